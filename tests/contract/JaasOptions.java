import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/**
 * Says what Kafka's clients read in `sasl.jaas.config`. Reads base64 lines from standard input. Writes a line for each: what
 * is wrong with it; or, each in base64, the login module, and each option's name and value, in order of their names.
 */
public class JaasOptions {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(new String(Base64.getDecoder().decode(line.substring(1)), StandardCharsets.UTF_8))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String config) {
        try {
            var entries = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(config))).configurationEntries();
            var entry = entries.get(0);
            var said = new StringBuilder(encoded(entry.getLoginModuleName()));
            new TreeMap<String, Object>(entry.getOptions()).forEach(
                (name, value) -> said.append(' ').append(encoded(name)).append(' ').append(encoded((String) value)));
            return said.toString();
        } catch (IllegalArgumentException | NullPointerException e) {
            return "refused";
        }
    }

    private static String encoded(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}

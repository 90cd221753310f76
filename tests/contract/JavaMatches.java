import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Says which texts java.util.regex matches, whole. Reads base64 lines from standard input: texts, an empty line, patterns.
 * Writes a line for each pattern: a digit for each text, 1 where it matches; or what is wrong with the pattern.
 */
public class JavaMatches {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        List<String> texts = new ArrayList<>();
        for (String line = in.readLine(); !line.isEmpty(); line = in.readLine()) {
            texts.add(decoded(line));
        }
        var out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(decoded(line), texts)).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String pattern, List<String> texts) {
        try {
            var compiled = Pattern.compile(pattern);
            var digits = new StringBuilder();
            texts.forEach(text -> digits.append(compiled.matcher(text).matches() ? '1' : '0'));
            return digits.toString();
        } catch (PatternSyntaxException | StringIndexOutOfBoundsException e) {
            return "refused";
        }
    }

    private static String decoded(String line) {
        return new String(Base64.getDecoder().decode(line.substring(1)), StandardCharsets.UTF_8);
    }
}

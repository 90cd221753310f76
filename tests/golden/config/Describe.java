import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.converters.ByteArrayConverter;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;
import org.apache.kafka.connect.runtime.rest.entities.ConfigKeyInfo;

/**
 * Writes how Connect describes the options of the three connectors, and of what it lets them override, as
 * connect_definitions.json of sparkmirror.config. A table is a list of names; each name is described once, and a
 * table whose description of it differs has its own under "differing".
 * Run in this folder with the jars of connect-runtime and connect-mirror on the class path:
 * java -cp 'JARS/*' Describe.java
 */
public class Describe {
    private static final Path FILE = Path.of("../../../src/sparkmirror/config/connect_definitions.json");
    private static final String MIRROR = "org.apache.kafka.connect.mirror.Mirror";
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Map<String, Object>> DESCRIBED = new LinkedHashMap<>();
    private static final Map<String, Map<String, Map<String, Object>>> DIFFERING = new LinkedHashMap<>();
    private static final Map<String, List<String>> TABLES = new LinkedHashMap<>();

    public static void main(String[] args) throws Exception {
        Set<String> groups = new LinkedHashSet<>(SourceConnectorConfig.configDef().groups());
        table("framework", SourceConnectorConfig.configDef());
        for (String kind : new String[] {"Source", "Checkpoint", "Heartbeat"}) {
            var type = Class.forName(MIRROR + kind + "Connector");
            var options = ((Connector) type.getDeclaredConstructor().newInstance()).config();
            table(type.getName(), options);
            groups.addAll(options.groups());
        }
        table("producer", ProducerConfig.configDef());
        table("admin", AdminClientConfig.configDef());
        table("converter", new ByteArrayConverter().config());

        StringBuilder text = new StringBuilder("{\n\"groups\": " + JSON.writeValueAsString(groups));
        section(text, "tables", TABLES);
        section(text, "described", DESCRIBED);
        section(text, "differing", DIFFERING);
        Files.writeString(FILE, text.append("\n}\n"), StandardCharsets.UTF_8);
    }

    private static void table(String name, ConfigDef options) {
        List<String> names = new ArrayList<>();
        for (ConfigDef.ConfigKey key : options.configKeys().values()) {
            names.add(key.name);
            Map<String, Object> described = described(AbstractHerder.convertConfigKey(key));
            Map<String, Object> first = DESCRIBED.putIfAbsent(key.name, described);
            if (first != null && !first.equals(described)) {
                Map<String, Object> differing = new LinkedHashMap<>(described);
                differing.entrySet().removeIf(field -> Objects.equals(field.getValue(), first.get(field.getKey())));
                DIFFERING.computeIfAbsent(name, unused -> new LinkedHashMap<>()).put(key.name, differing);
            }
        }
        TABLES.put(name, names);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> described(ConfigKeyInfo info) {
        Map<String, Object> fields = JSON.convertValue(info, LinkedHashMap.class);
        fields.remove("name");
        return fields;
    }

    private static void section(StringBuilder text, String name, Map<String, ?> entries) throws Exception {
        text.append(",\n").append(JSON.writeValueAsString(name)).append(": {");
        String separator = "\n";
        for (var entry : entries.entrySet()) {
            text.append(separator).append(JSON.writeValueAsString(entry.getKey()));
            text.append(": ").append(JSON.writeValueAsString(entry.getValue()));
            separator = ",\n";
        }
        text.append("\n}");
    }
}

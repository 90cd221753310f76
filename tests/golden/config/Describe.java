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
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.converters.ByteArrayConverter;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.DropHeaders;
import org.apache.kafka.connect.transforms.Filter;
import org.apache.kafka.connect.transforms.InsertHeader;
import org.apache.kafka.connect.transforms.RegexRouter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.HasHeaderKey;
import org.apache.kafka.connect.transforms.predicates.Predicate;
import org.apache.kafka.connect.transforms.predicates.RecordIsTombstone;
import org.apache.kafka.connect.transforms.predicates.TopicNameMatches;

/**
 * Writes Kafka's options as kafka_options.json of sparkmirror.config: how Connect describes those of the three
 * connectors and of the clients that they override; of the others type, default and validator. A table is a list of
 * names; each name is described once, and a table whose description of it differs has its own under "differing".
 * Run in this folder with the jars of connect-runtime and connect-mirror on the class path:
 * java -cp 'JARS/*' Describe.java
 */
public class Describe {
    private static final Path FILE = Path.of("../../../src/sparkmirror/config/kafka_options.json");
    private static final String CONNECT = "org.apache.kafka.connect.";
    private static final String MIRROR = CONNECT + "mirror.Mirror";
    private static final String CRYPTO = CONNECT + "runtime.distributed.Crypto";
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Map<String, Object>> DESCRIBED = new LinkedHashMap<>();
    private static final Map<String, Map<String, Map<String, Object>>> DIFFERING = new LinkedHashMap<>();
    private static final Map<String, List<String>> TABLES = new LinkedHashMap<>();
    private static boolean documented = true;

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
        chained("transforms", new Filter<SourceRecord>());
        chained("transforms", new InsertHeader<SourceRecord>());
        chained("transforms", new DropHeaders<SourceRecord>());
        chained("transforms", new RegexRouter<SourceRecord>());
        chained("predicates", new TopicNameMatches<SourceRecord>());
        chained("predicates", new HasHeaderKey<SourceRecord>());
        chained("predicates", new RecordIsTombstone<SourceRecord>());
        documented = false;
        var crypto = Class.forName(CRYPTO);
        table("consumer", ConsumerConfig.configDef());
        table("worker", hidden("runtime.distributed.DistributedConfig", crypto, crypto.getField("SYSTEM").get(null)));
        table("mirror_maker", hidden("mirror.MirrorMakerConfig", null, null));

        StringBuilder text = new StringBuilder("{\n\"groups\": " + JSON.writeValueAsString(groups));
        section(text, "tables", TABLES);
        section(text, "described", DESCRIBED);
        section(text, "differing", DIFFERING);
        Files.writeString(FILE, text.append("\n}\n"), StandardCharsets.UTF_8);
    }

    private static void table(String name, ConfigDef options) throws Exception {
        List<String> names = new ArrayList<>();
        for (ConfigDef.ConfigKey key : options.configKeys().values()) {
            if (key.internalConfig && !documented) {
                continue;
            }
            names.add(key.name);
            Map<String, Object> described = described(key);
            Map<String, Object> first = DESCRIBED.putIfAbsent(key.name, described);
            if (first != null && !first.equals(described)) {
                Map<String, Object> differing = new LinkedHashMap<>(described);
                differing.entrySet().removeIf(field -> Objects.equals(field.getValue(), first.get(field.getKey())));
                if (!differing.isEmpty()) {
                    DIFFERING.computeIfAbsent(name, unused -> new LinkedHashMap<>()).put(key.name, differing);
                }
            }
        }
        TABLES.put(name, names);
    }

    /** The table of a transform or predicate, as Connect adds it to a connector's for the alias ALIAS. */
    private static void chained(String kind, Object item) throws Exception {
        String type = item.getClass().getName();
        String head = kind + ".ALIAS.";
        var properties = Map.of(kind, "ALIAS", head + "type", type);
        ConfigDef of = new ConfigDef(item instanceof Transformation<?> it ? it.config() : ((Predicate<?>) item).config());
        ConfigDef options = new ConfigDef();
        String group = null;
        for (var key : ConnectorConfig.enrich(new Plugins(Map.of()), new ConfigDef(), properties, false).configKeys().values()) {
            String name = key.name.substring(head.length());
            if (name.equals("type") || name.equals("plugin.version")) {
                options.define(key);
                group = key.group;
            } else {  // an option of all
                of.define(name, key.type, key.defaultValue, key.importance, key.documentation);
            }
        }
        options.embed(head, group, 2, of);
        table(type, options);
        for (var key : of.configKeys().values()) {  // embedded validators are wrapped
            DESCRIBED.get(head + key.name).put("validator", validator(key.validator));
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> described(ConfigDef.ConfigKey key) throws Exception {
        Map<String, Object> fields = JSON.convertValue(AbstractHerder.convertConfigKey(key), LinkedHashMap.class);
        if (documented) {
            fields.remove("name");
        } else {
            fields.keySet().retainAll(Set.of("type", "required", "default_value"));
            fields.computeIfPresent("default_value", (name, text) -> text.toString().replace("class ", ""));
        }
        fields.put("validator", validator(key.validator));
        return fields;
    }

    /** How a validator describes itself; null for one that doesn't. */
    private static String validator(ConfigDef.Validator validator) throws Exception {
        if (validator instanceof ConfigDef.ValidList list) {
            var field = ConfigDef.ValidList.class.getDeclaredField("isEmptyAllowed");
            field.setAccessible(true);
            return (field.getBoolean(list) ? "list " : "non-empty list ") + list;
        }
        String text = Objects.toString(validator, null);
        return text == null || text.contains("@") ? null : text;
    }

    /** The table of a class that keeps it from others. */
    private static ConfigDef hidden(String type, Class<?> parameter, Object argument) throws Exception {
        Class<?>[] parameters = parameter == null ? new Class<?>[0] : new Class<?>[] {parameter};
        var method = Class.forName(CONNECT + type).getDeclaredMethod("config", parameters);
        method.setAccessible(true);
        return (ConfigDef) (parameter == null ? method.invoke(null) : method.invoke(null, argument));
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

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConnector;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;

/**
 * Writes what Java MirrorMaker 2 makes of the properties files beside this one, and the tables of its options.
 * Run in this folder with the jars of kafka-clients, connect-runtime and connect-mirror on the class path:
 * java -cp 'JARS/*' Capture.java
 */
public class Capture {
    private static final String MIRROR = "org.apache.kafka.connect.mirror.";
    private static final String DISTRIBUTED = "org.apache.kafka.connect.runtime.distributed.";

    public static void main(String[] args) throws Exception {
        write("mirror_maker.json", answers());
        write("config_defs.json", tables());
    }

    private static void write(String name, Map<String, Map<String, Object>> answers) throws Exception {
        StringBuilder text = new StringBuilder();
        for (var outer : answers.entrySet()) {
            text.append(text.isEmpty() ? "{\n" : ",\n").append(json(outer.getKey())).append(": {");
            String separator = "\n";
            for (var inner : outer.getValue().entrySet()) {
                text.append(separator).append(json(inner.getKey())).append(": ").append(json(inner.getValue()));
                separator = ",\n";
            }
            text.append("\n}");
        }
        Files.writeString(Path.of(name), text.append("\n}\n"));
    }

    private static String json(Object value) throws Exception {
        return new ObjectMapper().writeValueAsString(value);
    }

    private static Map<String, Map<String, Object>> answers() throws Exception {
        Map<String, Map<String, Object>> answers = new TreeMap<>();
        try (var files = Files.newDirectoryStream(Path.of("."), "*.properties")) {
            for (Path file : files) {
                var config = new MirrorMakerConfig(Utils.propsToStringMap(Utils.loadProps(file.toString())));
                Map<String, Object> flows = new TreeMap<>();
                for (var pair : config.clusterPairs()) {
                    flows.put(pair.toString(), new TreeMap<>(Map.of(
                        "worker", new TreeMap<>(config.workerConfig(pair)),
                        "source", new TreeMap<>(config.connectorBaseConfig(pair, MirrorSourceConnector.class)),
                        "heartbeat", new TreeMap<>(config.connectorBaseConfig(pair, MirrorHeartbeatConnector.class)))));
                }
                answers.put(file.getFileName().toString(), flows);
            }
        }
        return answers;
    }

    private static Map<String, Map<String, Object>> tables() throws Exception {
        Map<String, Map<String, Object>> tables = new TreeMap<>();
        tables.put("consumer", options(ConsumerConfig.configDef()));
        tables.put("producer", options(ProducerConfig.configDef()));
        tables.put("admin", options(AdminClientConfig.configDef()));
        for (String kind : new String[] {"Source", "Checkpoint", "Heartbeat"}) {
            var field = Class.forName(MIRROR + "Mirror" + kind + "Config").getDeclaredField("CONNECTOR_CONFIG_DEF");
            field.setAccessible(true);
            tables.put(kind.toLowerCase(), options((ConfigDef) field.get(null)));
        }
        var own = MirrorMakerConfig.class.getDeclaredMethod("config");
        own.setAccessible(true);
        tables.put("mirror_maker", options((ConfigDef) own.invoke(null)));
        var crypto = Class.forName(DISTRIBUTED + "Crypto");
        var worker = Class.forName(DISTRIBUTED + "DistributedConfig").getDeclaredMethod("config", crypto);
        worker.setAccessible(true);
        tables.put("worker", options((ConfigDef) worker.invoke(null, crypto.getField("SYSTEM").get(null))));
        return tables;
    }

    /** Name to type and default; no default at all is the text REQUIRED. */
    private static Map<String, Object> options(ConfigDef table) {
        Map<String, Object> options = new TreeMap<>();
        for (var key : table.configKeys().values()) {
            String fallback = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "REQUIRED";
            Map<String, String> option = new HashMap<>();
            option.put("type", key.type.name());
            option.put("default", fallback);
            options.put(key.name, new TreeMap<>(option));
        }
        return options;
    }
}

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.ReplicationPolicy;

/**
 * Writes what Kafka's replication policies say of many names, with several settings.
 * Run in this folder with the jars of kafka-clients, connect-mirror-client and jackson-databind on the class path:
 * java -cp 'JARS/*' Capture.java
 */
public class Capture {
    private static final List<String> NAMES = List.of(
        "orders", "orders.v1", "us.orders", "eu.us.orders", "us_orders", "us__orders", "a", "", ".", "..", "...",
        "a.", "a..", ".a", "..a", "_", "__", "___", "_a", "a_", "__a", "a__", "__consumer_offsets", ".hidden", "-",
        "heartbeats", "us.heartbeats", "eu.us.heartbeats", "us_heartbeats", "us__heartbeats", "my-heartbeats",
        "usheartbeats", "heartbeats.", "heartbeats.v1", ".heartbeats", "_heartbeats", "checkpoints.internal",
        "us.checkpoints.internal", "us_checkpoints_internal", "us__checkpoints__internal", ".checkpoints.internal",
        "checkpoints-internal", "mm2-offset-syncs.us.internal", "mm2-offset-syncs_us_internal", "mm2.internal",
        "mm2-offset-syncs__us__internal", "mm2-offsets.us.internal", "mm2-offsets-us-internal", "mm2_internal",
        "mm2internal", "mm2", "my.internal", "my-internal", "my_internal", "us.mm2-offset-syncs.eu.internal", "|", "a|b");
    private static final List<String> SEPARATORS = Arrays.asList(null, "_", "__", "|", "", "s");
    private static final List<String> FLAGS = Arrays.asList("TRUE", "false", " true");

    public static void main(String[] args) throws Exception {
        StringBuilder text = new StringBuilder();
        ObjectMapper json = new ObjectMapper();
        for (String kind : List.of("DefaultReplicationPolicy", "IdentityReplicationPolicy")) {
            for (String separator : SEPARATORS) {
                for (String flag : FLAGS) {
                    Map<String, Object> said = said(kind, properties(separator, flag, "us"));
                    text.append(text.isEmpty() ? "[\n" : ",\n").append(json.writeValueAsString(said));
                }
            }
            Map<String, Object> said = said(kind, properties(null, null, null));
            text.append(",\n").append(json.writeValueAsString(said));
        }
        Files.writeString(Path.of("policies.json"), text.append("\n]\n").toString());
    }

    private static Map<String, String> properties(String separator, String flag, String alias) {
        Map<String, String> properties = new LinkedHashMap<>();
        properties.put("replication.policy.separator", separator);
        properties.put("replication.policy.internal.topic.separator.enabled", flag);
        properties.put("source.cluster.alias", alias);
        properties.values().removeIf(value -> value == null);
        return properties;
    }

    private static Map<String, Object> said(String kind, Map<String, String> properties) throws Exception {
        ReplicationPolicy policy = kind.startsWith("Default") ? new DefaultReplicationPolicy() : new IdentityReplicationPolicy();
        ((Configurable) policy).configure(new HashMap<>(properties));
        Map<String, Object> answers = new LinkedHashMap<>();
        answers.put("class", "org.apache.kafka.connect.mirror." + kind);
        answers.put("properties", properties);
        answers.put("own", List.of(policy.heartbeatsTopic(), policy.offsetSyncsTopic("eu"), policy.checkpointsTopic("us")));
        Map<String, Object> names = new LinkedHashMap<>();
        for (String name : NAMES) {
            names.put(name, answers(policy, name));
        }
        answers.put("names", names);
        return answers;
    }

    private static List<Object> answers(ReplicationPolicy policy, String name) {
        int is = (policy.isHeartbeatsTopic(name) ? 8 : 0) + (policy.isCheckpointsTopic(name) ? 4 : 0)
            + (policy.isMM2InternalTopic(name) ? 2 : 0) + (policy.isInternalTopic(name) ? 1 : 0);
        return Arrays.asList(policy.formatRemoteTopic("us", name), policy.topicSource(name),
            policy.upstreamTopic(name), policy.originalTopic(name), is);
    }
}

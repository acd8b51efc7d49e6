import java.io.File;
import java.util.HashMap;
import java.util.TreeSet;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileSnap;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * For which znodes of a snapshot a ZooKeeper with this configuration takes what they have as ephemeralOwner. Arguments:
 * the configuration, the directory of the snapshot. The owners that it takes for sessions come last: it deletes their
 * znodes at its start.
 */
public class AskEphemeralTypes {
    public static void main(String[] given) throws Exception {
        new QuorumPeerConfig().parse(given[0]);
        DataTree tree = new DataTree();
        new FileSnap(new File(given[1])).deserialize(tree, new HashMap<>());
        System.out.println("containers " + new TreeSet<>(tree.getContainers()));
        System.out.println("ttls " + new TreeSet<>(tree.getTtls()));
        System.out.println("sessions " + new TreeSet<>(tree.getSessions()));
    }
}

import java.util.Collections;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * Logs in to a server with the JAAS file of this process, and prints what the server answers.
 *
 * <p>It is run as {@code java Login SERVER ID}, where ID is the SASL id that the login gives, or as
 * {@code java Login SERVER} for a login that is refused, or without a JAAS file.
 */
final class Login {
    private static final long WAIT_S = 180;
    private static final BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();

    private Login() {}

    /** A request of which the outcome is printed. */
    interface Request {
        Object run() throws Exception;
    }

    private static void say(String what, Request request) throws Exception {
        String outcome;
        try {
            outcome = String.valueOf(request.run());
        } catch (KeeperException e) {
            outcome = e.code().toString();
        }
        System.out.println(what + ": " + outcome);
    }

    private static void await(KeeperState wanted) throws Exception {
        KeeperState state;
        do {
            state = states.poll(WAIT_S, TimeUnit.SECONDS);
            if (state == null) {
                throw new IllegalStateException("the state " + wanted + " does not come");
            }
        } while (state != wanted);
        System.out.println("state: " + wanted);
    }

    public static void main(String[] args) throws Exception {
        ZooKeeper zk = new ZooKeeper(args[0], 30_000, (WatchedEvent e) -> states.add(e.getState()));
        if (args.length == 1) {
            if (System.getProperty("java.security.auth.login.config") != null) {
                await(KeeperState.AuthFailed);
            }
            say("exists", () -> zk.exists("/", false) != null);
            System.exit(0);
        }
        await(KeeperState.SaslAuthenticated);
        String id = args[1];
        say("create", () -> zk.create("/java", id.getBytes(), Collections.singletonList(new ACL(Perms.ALL, new Id("sasl", id))), CreateMode.PERSISTENT));
        say("getData", () -> new String(zk.getData("/java", false, null)));
        say("getACL", () -> zk.getACL("/java", null).toString().trim());
        say("create for another", () -> zk.create("/another", null, Collections.singletonList(new ACL(Perms.ALL, new Id("sasl", "carl"))), CreateMode.PERSISTENT));
        say("getData of another", () -> zk.getData("/another", false, null));
        say("invalid ACL", () -> zk.create("/bad", null, Collections.singletonList(new ACL(Perms.ALL, new Id("sasl", "a/b/c@D"))), CreateMode.PERSISTENT));
        say("whoAmI", () -> zk.whoAmI().stream().map(c -> c.getAuthScheme() + ":" + c.getUser()).sorted().toList());
        zk.close();
        try (CuratorFramework curator = CuratorFrameworkFactory.newClient(args[0], new RetryForever(50))) {
            curator.start();
            say("Curator creates", () -> curator.create().withACL(Ids.CREATOR_ALL_ACL).forPath("/curator", id.getBytes()));
            say("Curator reads", () -> new String(curator.getData().forPath("/curator")));
            say("Curator's ACL", () -> curator.getACL().forPath("/curator").toString().trim());
            say("Curator reads another", () -> curator.getData().forPath("/another"));
        }
        System.exit(0);
    }
}

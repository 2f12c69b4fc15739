import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * Clients of Apache's own library, one of which accepts a read-only server.
 *
 * <p>Run as {@code java Reader HOSTS}. It prints @alone to have all servers but one
 * of HOSTS stopped, and @whole to have them restarted. It ends with 1 and a stack trace when an expectation does not hold.
 */
public final class Reader {
    private static final int SESSION_MS = 10_000;
    private static final long WAIT_MS = 180_000;
    private static String hosts;

    private final BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
    private final ZooKeeper zk;

    private Reader(boolean canBeReadOnly) throws Exception {
        zk = new ZooKeeper(hosts, SESSION_MS, event -> note(event.getState(), event.getPath()), canBeReadOnly);
    }

    private void note(KeeperState state, String path) {
        if (path == null) {
            states.add(state);
        }
    }

    /** Takes states until the expected one arrives; an expired session is never expected. */
    private void await(KeeperState want) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        for (KeeperState got = null; got != want; ) {
            got = states.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            check(got != null, "not within %d ms: %s", WAIT_MS, want);
            check(got != KeeperState.Expired, "a session has expired");
        }
    }

    /** Waits until the client looks for a server, which it reports only a moment after a lost connection. */
    private void awaitConnecting() throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        while (zk.getState() != ZooKeeper.States.CONNECTING) {
            check(System.nanoTime() < end, "the client still is %s", zk.getState());
            Thread.sleep(10);
        }
    }

    public static void main(String[] args) {
        hosts = args[0];
        try {
            run();
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void run() throws Exception {
        Reader before = new Reader(true);
        before.await(KeeperState.SyncConnected);
        before.zk.create("/java-reads-e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        before.zk.create("/java-reads", bytes("v"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        long session = before.zk.getSessionId();

        ask("@alone");
        before.await(KeeperState.Disconnected);
        Reader reader = new Reader(true);
        Reader plain = new Reader(false);
        reader.await(KeeperState.ConnectedReadOnly);
        check(reader.zk.getState() == ZooKeeper.States.CONNECTEDREADONLY, "state %s", reader.zk.getState());
        check(new String(reader.zk.getData("/java-reads", true, null)).equals("v"), "another value");
        check(reader.zk.getChildren("/", false).contains("java-reads"), "not listed");
        refused(() -> reader.zk.setData("/java-reads", bytes("w"), -1));
        refused(() -> reader.zk.create("/java-none", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL));
        refused(() -> reader.zk.multi(List.of(Op.check("/java-reads", 0))));
        check(reader.zk.getEphemerals().isEmpty(), "it has ephemerals");
        check(plain.zk.getState() == ZooKeeper.States.CONNECTING, "plain is %s", plain.zk.getState());
        before.awaitConnecting();

        ask("@whole");
        reader.await(KeeperState.SyncConnected);
        reader.zk.setData("/java-reads", bytes("w"), -1);
        plain.await(KeeperState.SyncConnected);
        before.await(KeeperState.SyncConnected);
        check(before.zk.getSessionId() == session, "another session");
        check(before.zk.exists("/java-reads-e", false) != null, "its ephemeral is gone");
        for (Reader r : List.of(before, reader, plain)) {
            r.zk.close();
        }
    }

    private interface Call {
        void run() throws Exception;
    }

    private static void refused(Call call) throws Exception {
        try {
            call.run();
        } catch (KeeperException.NotReadOnlyException e) {
            return;
        }
        throw new AssertionError("a read-only server has accepted a write");
    }

    private static void check(boolean holds, String message, Object... args) {
        if (!holds) {
            throw new AssertionError(String.format(message, args));
        }
    }

    private static void ask(String command) {
        System.out.println(command);
        System.out.flush();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }
}

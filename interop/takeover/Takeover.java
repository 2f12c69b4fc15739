import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * Clients of Curator that hold a lock in turn while servers are replaced.
 *
 * <p>Run as {@code java Takeover HOSTS}. With a JAAS file the clients log in, and only they may use
 * their znodes. Each holder of the lock increments a counter. When standard input ends, the
 * clients stop, and the program prints what they counted as JSON; see program in
 * takeover_programs_test.go.
 */
public final class Takeover {
    private static final int CLIENTS = 3;
    private static final int SESSION_MS = 50_000;
    private static final long WAIT_MS = 180_000;
    private static final long PAUSE_MS = 10; // between two turns of a client
    private static final String COUNTER = "/curator/counter";

    private static final Map<String, Integer> counts = new TreeMap<>(); // guarded by itself, as are errors and holders
    private static final Map<String, Integer> errors = new TreeMap<>();
    private static int holders;
    private static volatile boolean stop;

    private Takeover() {}

    public static void main(String[] args) throws Exception {
        List<ACL> acl = System.getProperty("java.security.auth.login.config") == null ? Ids.OPEN_ACL_UNSAFE : Ids.CREATOR_ALL_ACL;
        List<CuratorFramework> clients = new ArrayList<>();
        List<Long> sessions = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < CLIENTS; i++) {
            CuratorFramework client = connect(args[0], acl);
            clients.add(client);
            sessions.add(session(client));
            threads.add(new Thread(() -> work(client)));
        }
        clients.get(0).create().creatingParentsIfNeeded().forPath(COUNTER, bytes(0));
        threads.forEach(Thread::start);
        System.out.println("ready");
        System.in.readAllBytes();
        stop = true;
        for (Thread thread : threads) {
            thread.join(WAIT_MS);
            check(!thread.isAlive(), "a client does not get the lock");
        }
        count(counts, "sessions", CLIENTS);
        for (int i = 0; i < CLIENTS; i++) {
            count(counts, "lost", session(clients.get(i)) == sessions.get(i) ? 0 : 1);
        }
        System.out.println("{" + fields(counts) + ", \"errors\": {" + fields(errors) + "}}");
        System.exit(0);
    }

    private static CuratorFramework connect(String hosts, List<ACL> acl) throws Exception {
        ACLProvider all =
                new ACLProvider() {
                    @Override
                    public List<ACL> getDefaultAcl() {
                        return acl;
                    }

                    @Override
                    public List<ACL> getAclForPath(String path) {
                        return acl;
                    }
                };
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(hosts)
                        .sessionTimeoutMs(SESSION_MS)
                        .connectionTimeoutMs(SESSION_MS)
                        .retryPolicy(new RetryForever(50))
                        .aclProvider(all)
                        .build();
        client.start();
        check(client.blockUntilConnected((int) WAIT_MS, TimeUnit.MILLISECONDS), "no connection");
        return client;
    }

    private static void work(CuratorFramework client) {
        InterProcessMutex lock = new InterProcessMutex(client, "/curator/lock");
        while (!stop) {
            try {
                lock.acquire();
                try {
                    increment(client.getZookeeperClient().getZooKeeper());
                } finally {
                    lock.release();
                }
                Thread.sleep(PAUSE_MS);
            } catch (KeeperException e) {
                count(errors, e.code().name(), 1);
            } catch (Exception e) {
                count(errors, e.toString(), 1);
            }
        }
    }

    /** Increments the counter, which only the holder of the lock may do. Curator does not repeat these requests. */
    private static void increment(ZooKeeper zk) throws Exception {
        synchronized (counts) {
            count(counts, "overlaps", holders++);
        }
        try {
            Stat stat = new Stat();
            int value = number(zk.getData(COUNTER, false, stat));
            try {
                zk.setData(COUNTER, bytes(value + 1), stat.getVersion());
            } catch (KeeperException e) {
                count(counts, "unsure", 1);
                throw e;
            }
            count(counts, "increments", 1);
        } finally {
            synchronized (counts) {
                holders--;
            }
        }
    }

    private static void count(Map<String, Integer> what, String name, int n) {
        synchronized (counts) {
            what.merge(name, n, Integer::sum);
        }
    }

    private static String fields(Map<String, Integer> what) {
        return what.entrySet().stream()
                .map(e -> "\"" + e.getKey().replace('"', '\'') + "\": " + e.getValue())
                .collect(Collectors.joining(", "));
    }

    private static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    private static byte[] bytes(int value) {
        return Integer.toString(value).getBytes(StandardCharsets.UTF_8);
    }

    private static int number(byte[] data) {
        return Integer.parseInt(new String(data, StandardCharsets.UTF_8));
    }

    private static void check(boolean holds, String message) {
        if (!holds) {
            throw new AssertionError(message);
        }
    }
}

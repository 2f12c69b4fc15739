import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Faults on demand, from Java: checks the effect of each call on Apache's client. Run as {@code java
 * Faults SERVERS URL}, of {@code bellwether serve --ensemble 3 --faults}.
 */
public final class Faults {
    private static final long WAIT_MS = 180_000;
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static String servers;
    private static String url;

    private Faults() {}

    public static void main(String[] args) {
        servers = args[0];
        url = args[1];
        try {
            sessionExpires();
            replyIsLost();
            watchIsLate();
            linkIsLate();
            linkIsCut();
            leaderPauses();
            serverCrashes();
            clockIsSkewed();
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** Makes a call and returns its status and body. */
    private static HttpResponse<String> call(String method, String path) throws Exception {
        HttpRequest q = HttpRequest.newBuilder(URI.create(url + path)).method(method, HttpRequest.BodyPublishers.noBody()).build();
        return HTTP.send(q, HttpResponse.BodyHandlers.ofString());
    }

    private static void fault(String path) throws Exception {
        HttpResponse<String> answer = call("POST", path);
        check(answer.statusCode() == 204, "%s: %d %s", path, answer.statusCode(), answer.body());
    }

    /** Waits for a server in this role, and returns its number and address. */
    private static String[] server(String role) throws Exception {
        Pattern one = Pattern.compile("\\{\"id\":(\\d+),\"address\":\"([^\"]+)\",\"role\":\"" + role + "\"");
        String[] found = new String[2];
        until(
                role,
                () -> {
                    Matcher m = one.matcher(call("GET", "/").body());
                    if (m.find()) {
                        found[0] = m.group(1);
                        found[1] = m.group(2);
                    }
                    return found[0] != null;
                });
        return found;
    }

    /** A connected client and its later connection states. */
    private static final class Client implements AutoCloseable {
        final BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
        final ZooKeeper zk;

        Client(String hosts, int timeoutMs) throws Exception {
            zk = new ZooKeeper(hosts, timeoutMs, event -> states.add(event.getState()));
            await(KeeperState.SyncConnected);
        }

        void await(KeeperState want) throws Exception {
            for (KeeperState got = null; got != want; ) {
                got = states.poll(WAIT_MS, TimeUnit.MILLISECONDS);
                check(got != null, "not in time: %s", want);
            }
        }

        String session() {
            return "0x" + Long.toHexString(zk.getSessionId());
        }

        @Override
        public void close() throws Exception {
            zk.close();
        }
    }

    private static void sessionExpires() throws Exception {
        try (Client client = new Client(servers, 6_000);
                Client other = new Client(servers, 6_000)) {
            client.zk.create("/mine", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            fault("/sessions/" + client.zk.getSessionId() + "/expire");
            client.await(KeeperState.Expired);
            until("the ephemeral goes", () -> other.zk.exists("/mine", false) == null);
        }
    }

    private static void replyIsLost() throws Exception {
        try (Client client = new Client(servers, 6_000)) {
            fault("/replies/create/lose");
            try {
                client.zk.create("/lost", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                throw new AssertionError("the reply was not lost");
            } catch (KeeperException.ConnectionLossException e) {
                client.await(KeeperState.SyncConnected);
            }
            check(client.zk.exists("/lost", false) != null, "the create was not carried out");
        }
    }

    private static void watchIsLate() throws Exception {
        try (Client client = new Client(servers, 6_000)) {
            client.zk.create("/watched", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            CountDownLatch came = new CountDownLatch(1);
            client.zk.exists("/watched", event -> came.countDown());
            fault("/watches/delay?by=500ms");
            long began = System.nanoTime();
            client.zk.setData("/watched", null, -1, (code, path, ctx, stat) -> {}, null);
            check(came.await(WAIT_MS, TimeUnit.MILLISECONDS), "no event");
            check(System.nanoTime() - began >= 500_000_000L, "the event was not late");
            fault("/watches/delay?by=0s");
        }
    }

    private static void linkIsLate() throws Exception {
        try (Client client = new Client(servers, 6_000)) {
            fault("/links/everyone/" + client.session() + "/delay?by=300ms&oneway");
            long began = System.nanoTime();
            client.zk.exists("/", false);
            check(System.nanoTime() - began >= 300_000_000L, "the answer was not late");
            fault("/heal");
        }
    }

    private static void linkIsCut() throws Exception {
        try (Client client = new Client(servers, 3_000)) {
            fault("/links/everyone/" + client.session() + "/cut?oneway");
            client.await(KeeperState.Disconnected);
            fault("/heal");
            for (KeeperState got = null; got != KeeperState.SyncConnected && got != KeeperState.Expired; ) {
                got = client.states.poll(WAIT_MS, TimeUnit.MILLISECONDS);
                check(got != null, "the client did not come back");
            }
        }
    }

    private static void leaderPauses() throws Exception {
        String[] leader = server("leader");
        String[] follower = server("follower");
        try (Client client = new Client(follower[1], 6_000)) {
            client.zk.create("/paused", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            fault("/servers/" + leader[0] + "/pause");
            check(!server("leader")[0].equals(leader[0]), "a paused server leads");
            until("a write after the change", () -> written(client));
            fault("/servers/" + leader[0] + "/resume");
            fault("/await");
        }
    }

    private static boolean written(Client client) throws Exception {
        try {
            client.zk.setData("/paused", new byte[] {1}, -1);
            return true;
        } catch (KeeperException.ConnectionLossException e) {
            return false; // try again
        }
    }

    private static void serverCrashes() throws Exception {
        String[] follower = server("follower");
        fault("/servers/" + follower[0] + "/crash");
        check(server("down")[0].equals(follower[0]), "another server than the crashed one is down");
        HttpResponse<String> refused = call("POST", "/servers/" + follower[0] + "/pause");
        check(refused.statusCode() == 409 && refused.body().contains("does not run"), "%s", refused.body());
        fault("/servers/" + follower[0] + "/start");
        fault("/await");
        try (Client client = new Client(follower[1], 6_000)) {
            CountDownLatch synced = new CountDownLatch(1);
            client.zk.sync("/", (code, path, ctx) -> synced.countDown(), null);
            check(synced.await(WAIT_MS, TimeUnit.MILLISECONDS), "no sync");
            check(client.zk.getData("/paused", false, null).length == 1, "the acknowledged write is lost");
        }
    }

    private static void clockIsSkewed() throws Exception {
        String leader = server("leader")[0];
        fault("/servers/" + leader + "/skew?by=-1000h");
        try (Client client = new Client(servers, 6_000)) {
            client.zk.create("/early", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            Stat stat = client.zk.exists("/early", false);
            long early = System.currentTimeMillis() - stat.getCtime();
            check(early >= TimeUnit.HOURS.toMillis(1000), "the clock was not set back by 1000 h: the znode is %d ms old", early);
        }
        fault("/servers/" + leader + "/skew?by=0s");
    }

    private static void until(String what, Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS); !condition.call(); Thread.sleep(10)) {
            check(System.nanoTime() < end, "not in time: %s", what);
        }
    }

    private static void check(boolean holds, String message, Object... args) {
        if (!holds) {
            throw new AssertionError(String.format(message, args));
        }
    }
}

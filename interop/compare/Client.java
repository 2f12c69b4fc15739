import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/**
 * Measures Curator and the Java client in the same way as the clients of this command. Run as
 * {@code Client WHAT SERVERS PATH N NUMBERS...}.
 */
public final class Client {
    private static final int SESSION_MS = 10_000;
    private static final long WAIT_S = 60;

    public static void main(String[] args) throws Exception {
        String what = args[0], servers = args[1], path = args[2];
        int n = Integer.parseInt(args[3]);
        switch (what) {
            case "election":
            case "lock":
                handAround(what, servers, path, n, Long.parseLong(args[4]), Long.parseLong(args[5]));
                break;
            case "sessions":
                openSessions(servers, n);
                break;
            case "caches":
                keepCaches(servers, path, n, Integer.parseInt(args[4]));
                break;
            default:
                throw new IllegalArgumentException(what);
        }
        System.exit(0);
    }

    private static CuratorFramework connect(String servers) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers, SESSION_MS, SESSION_MS, new RetryForever(50));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** Handovers: one holder gives up, the next one takes over. */
    private static final List<Long> took = new ArrayList<>();

    private static long begin; // when the holder gave up; 0 while somebody holds
    private static int all;
    private static long from; // earlier handovers do not count

    private static synchronized void taken() {
        long now = System.nanoTime();
        all++;
        if (begin > from) {
            took.add(now - begin);
        }
        begin = 0;
    }

    private static synchronized void given() {
        begin = System.nanoTime();
    }

    private interface Turn {
        void run() throws Exception;
    }

    private static void handAround(String what, String servers, String path, int n, long warmupMS, long durationMS)
            throws Exception {
        List<Turn> turns = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            turns.add(turnOf(what, connect(servers), path, Integer.toString(i)));
        }
        from = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(warmupMS);
        long end = from + TimeUnit.MILLISECONDS.toNanos(durationMS);
        CountDownLatch running = new CountDownLatch(n);
        for (Turn turn : turns) {
            new Thread(
                            () -> {
                                try {
                                    while (System.nanoTime() < end) {
                                        turn.run();
                                    }
                                } catch (Exception e) {
                                    e.printStackTrace();
                                    System.exit(1);
                                }
                                running.countDown();
                            })
                    .start();
        }
        running.await();
        double seconds = (System.nanoTime() - from) / 1e9;
        Collections.sort(took);
        System.out.printf(
                "{\"all\": %d, \"handovers\": %d, \"seconds\": %.3f, \"min_us\": %d, \"p50_us\": %d, \"p99_us\": %d}%n",
                all, took.size(), seconds, at(0), at(50), at(99));
    }

    private static long at(int share) {
        return took.isEmpty() ? 0 : took.get((int) ((took.size() - 1L) * share / 100)) / 1_000;
    }

    private static Turn turnOf(String what, CuratorFramework client, String path, String id) {
        if (what.equals("lock")) {
            InterProcessMutex lock = new InterProcessMutex(client, path);
            return () -> {
                if (!lock.acquire(WAIT_S, TimeUnit.SECONDS)) {
                    throw new AssertionError("the lock was not acquired in time");
                }
                taken();
                given();
                lock.release();
            };
        }
        return () -> {
            LeaderLatch latch = new LeaderLatch(client, path, id);
            latch.start();
            if (!latch.await(WAIT_S, TimeUnit.SECONDS)) {
                throw new AssertionError("the latch did not lead in time");
            }
            taken();
            given();
            latch.close();
        };
    }

    private static void openSessions(String servers, int n) throws Exception {
        long heap = heap(), rss = status("VmRSS:"), threads = status("Threads:");
        List<ZooKeeper> all = new ArrayList<>();
        CountDownLatch connected = new CountDownLatch(n);
        for (int i = 0; i < n; i++) {
            all.add(
                    new ZooKeeper(
                            servers,
                            SESSION_MS,
                            event -> {
                                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                                    connected.countDown();
                                }
                            }));
        }
        if (!connected.await(WAIT_S, TimeUnit.SECONDS)) {
            throw new AssertionError("the sessions were not connected in time");
        }
        System.out.printf(
                "{\"heap\": %d, \"resident\": %d, \"threads\": %.1f}%n",
                (heap() - heap) / n,
                (status("VmRSS:") - rss) * 1024 / n,
                (double) (status("Threads:") - threads) / all.size());
    }

    private static long heap() throws Exception {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(100);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    /** Returns a number of /proc/self/status. */
    private static long status(String word) throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(word)) {
                return Long.parseLong(line.substring(word.length()).trim().split(" ")[0]);
            }
        }
        throw new AssertionError(word);
    }

    private static void keepCaches(String servers, String path, int n, int first) throws Exception {
        List<CuratorCache> all = new ArrayList<>();
        CountDownLatch loaded = new CountDownLatch(n);
        Object changed = new Object();
        for (int i = 0; i < n; i++) {
            CuratorCache cache = CuratorCache.build(connect(servers), path);
            cache.listenable()
                    .addListener(
                            CuratorCacheListener.builder()
                                    .forInitialized(loaded::countDown)
                                    .forAll(
                                            (type, before, now) -> {
                                                synchronized (changed) {
                                                    changed.notifyAll();
                                                }
                                            })
                                    .build());
            cache.start();
            all.add(cache);
        }
        if (!loaded.await(2 * WAIT_S, TimeUnit.SECONDS)) {
            throw new AssertionError("the caches were not loaded in time");
        }
        System.out.println("@ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            byte[] value = line.getBytes(StandardCharsets.UTF_8);
            for (CuratorCache cache : all) {
                synchronized (changed) {
                    while (!shows(cache, path, value, first)) {
                        changed.wait(1_000);
                    }
                }
            }
            System.out.println("@right " + line);
        }
    }

    private static boolean shows(CuratorCache cache, String path, byte[] value, int first) {
        for (int i = 0; i < first; i++) {
            ChildData node = cache.get(String.format("%s/n%03d", path, i)).orElse(null);
            if (node == null || !Arrays.equals(node.getData(), value)) {
                return false;
            }
        }
        return true;
    }
}

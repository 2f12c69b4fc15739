import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphore;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.zookeeper.CreateMode;

/**
 * Uses each of Curator's recipes, so that the command recipes can recognise it. Run as
 * {@code java Shapes SERVER PREFIX}; it prints @look when all are in use and ends when
 * PREFIX/release exists.
 */
public final class Shapes {
    private static final long WAIT_MS = 180_000;
    private static String prefix;
    private static CuratorFramework ann;
    private static CuratorFramework bob;
    private static CuratorFramework cat;

    private Shapes() {}

    public static void main(String[] args) {
        try {
            prefix = args[1];
            ann = connect(args[0], "ann");
            bob = connect(args[0], "bob");
            cat = connect(args[0], "cat");
            locks();
            semaphores();
            elections();
            barriers();
            groups();
            queues();
            rest();
            System.out.println("@look");
            until("release", () -> ann.checkExists().forPath(prefix + "/release") != null);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        Runtime.getRuntime().halt(0); // waiting threads need not end cleanly
    }

    /** A client whose znodes contain its name instead of the machine's address. */
    private static CuratorFramework connect(String server, String name) {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(server)
                        .sessionTimeoutMs(10_000)
                        .retryPolicy(new RetryForever(50))
                        .defaultData(name.getBytes(StandardCharsets.UTF_8))
                        .build();
        client.start();
        return client;
    }

    private static String path(String name) {
        return prefix + "/" + name;
    }

    private static void locks() throws Exception {
        hold(new InterProcessMutex(ann, path("mutex"))::acquire);
        start(new InterProcessMutex(bob, path("mutex"))::acquire);
        children("mutex", 2);
        // Two threads of one client.
        InterProcessMutex shared = new InterProcessMutex(ann, path("threads"));
        hold(shared::acquire);
        start(shared::acquire);
        children("threads", 2);
        hold(new InterProcessReadWriteLock(ann, path("rw")).readLock()::acquire);
        hold(new InterProcessReadWriteLock(bob, path("rw")).readLock()::acquire);
        start(new InterProcessReadWriteLock(cat, path("rw")).writeLock()::acquire);
        children("rw", 3);
        // A writer that also reads, which is allowed in the same thread.
        InterProcessReadWriteLock down = new InterProcessReadWriteLock(ann, path("downgrade"));
        down.writeLock().acquire();
        down.readLock().acquire();
    }

    @SuppressWarnings("deprecation")
    private static void semaphores() throws Exception {
        // The first version's bids are those of a mutex, in name and data: both hold.
        new InterProcessSemaphore(ann, path("oldsemaphore"), 2).acquire();
        new InterProcessSemaphore(bob, path("oldsemaphore"), 2).acquire();
        new InterProcessSemaphoreV2(ann, path("semaphore"), 2).acquire();
        new InterProcessSemaphoreV2(bob, path("semaphore"), 2).acquire();
        start(() -> new InterProcessSemaphoreV2(cat, path("semaphore"), 2).acquire());
        children("semaphore/locks", 1);
        children("semaphore/leases", 3); // a waiting client already has a bid for a lease
        new InterProcessSemaphoreMutex(ann, path("semaphoremutex")).acquire();
    }

    private static void elections() throws Exception {
        LeaderLatch latch = new LeaderLatch(ann, path("latch"), "ann");
        latch.start();
        latch.await();
        new LeaderLatch(bob, path("latch"), "bob").start();
        children("latch", 2);
        for (CuratorFramework client : new CuratorFramework[] {ann, bob}) {
            LeaderSelector selector =
                    new LeaderSelector(
                            client,
                            path("selector"),
                            new LeaderSelectorListenerAdapter() {
                                @Override
                                public void takeLeadership(CuratorFramework c) throws Exception {
                                    new CountDownLatch(1).await();
                                }
                            });
            selector.setId(client == ann ? "ann" : "bob");
            selector.start();
            children("selector", client == ann ? 1 : 2);
        }
    }

    private static void barriers() throws Exception {
        new DistributedBarrier(ann, path("barrier")).setBarrier();
        start(new DistributedDoubleBarrier(ann, path("waiting"), 3)::enter);
        start(new DistributedDoubleBarrier(bob, path("waiting"), 3)::enter);
        children("waiting", 2);
        start(new DistributedDoubleBarrier(ann, path("begun"), 2)::enter);
        new DistributedDoubleBarrier(bob, path("begun"), 2).enter();
        children("begun", 3);
    }

    private static void groups() throws Exception {
        new GroupMember(ann, path("group"), "ann").start();
        new GroupMember(bob, path("group"), "bob").start();
        children("group", 2);
        PersistentNode node = new PersistentNode(ann, CreateMode.EPHEMERAL, true, path("protected/ann"), new byte[0]);
        node.start();
        children("protected", 1);
        // An instance's name is a UUID unless another one is given.
        for (CuratorFramework client : new CuratorFramework[] {ann, bob}) {
            ServiceInstance<Void> web = ServiceInstance.<Void>builder().name("web").address("127.0.0.1").port(81).build();
            UUID.fromString(web.getId());
            ServiceDiscoveryBuilder.builder(Void.class)
                    .client(client)
                    .basePath(path("services"))
                    .thisInstance(web)
                    .build()
                    .start();
        }
        children("services/web", 2);
    }

    private static void queues() throws Exception {
        SimpleDistributedQueue simple = new SimpleDistributedQueue(ann, path("simple"));
        simple.offer(new byte[] {1});
        simple.offer(new byte[] {2});
        QueueSerializer<String> text =
                new QueueSerializer<String>() {
                    @Override
                    public byte[] serialize(String item) {
                        return item.getBytes(StandardCharsets.UTF_8);
                    }

                    @Override
                    public String deserialize(byte[] bytes) {
                        return new String(bytes, StandardCharsets.UTF_8);
                    }
                };
        DistributedQueue<String> plain = QueueBuilder.builder(ann, null, text, path("plain")).buildQueue();
        plain.start();
        DistributedPriorityQueue<String> priority =
                QueueBuilder.builder(ann, null, text, path("priority")).buildPriorityQueue(0);
        priority.start();
        DistributedDelayQueue<String> delay = QueueBuilder.builder(ann, null, text, path("delay")).buildDelayQueue();
        delay.start();
        DistributedIdQueue<String> id = QueueBuilder.builder(ann, null, text, path("id")).buildIdQueue();
        id.start();
        for (String item : new String[] {"one", "two"}) {
            plain.put(item);
            priority.put(item, item.equals("one") ? 5 : -5);
            delay.put(item, System.currentTimeMillis() + 3_600_000);
            id.put(item, item + "-0000000001");
        }
        for (String name : new String[] {"simple", "plain", "priority", "delay", "id"}) {
            children(name, 2);
        }
    }

    private static void rest() throws Exception {
        new DistributedAtomicLong(ann, path("long"), new RetryForever(50)).increment();
        SharedCount count = new SharedCount(ann, path("count"), 3);
        count.start();
        count.setCount(4);
    }

    /** Waits for something that never happens. */
    private interface Waiting {
        void run() throws Exception;
    }

    /** Holds a lock in a separate thread, because a mutex belongs to its thread. */
    private static void hold(Waiting acquire) throws Exception {
        Thread t = start(acquire);
        t.join(WAIT_MS);
        if (t.isAlive()) {
            throw new AssertionError("a free lock was not given");
        }
    }

    private static Thread start(Waiting wait) {
        Thread t =
                new Thread(
                        () -> {
                            try {
                                wait.run();
                            } catch (Exception e) {
                                e.printStackTrace();
                            }
                        });
        t.setDaemon(true);
        t.start();
        return t;
    }

    private static void children(String name, int count) throws Exception {
        until(
                count + " in " + name,
                () -> ann.checkExists().forPath(path(name)) != null && ann.getChildren().forPath(path(name)).size() == count);
    }

    private static void until(String what, Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS); !condition.call(); Thread.sleep(10)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not in time: " + what);
            }
        }
    }
}

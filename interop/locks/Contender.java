import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;

/**
 * A contender that uses Curator or Apache's election, one of many. Run as {@code Contender MODE
 * ADDRESS PARENT}. Until it is killed, it repeatedly obtains the claim of MODE, prints @holds, creates an
 * ephemeral child of PARENT-inside, checks for other holders there, deletes it, prints @free and gives
 * the claim up. A semaphore has two leases.
 */
public final class Contender {
    private static final int SESSION_MS = 3_000;
    private static final int LEASES = 2;
    private static final long WAIT_S = 60;

    private final CuratorFramework client;
    private final String parent;
    private final String letter; // r for readers, l for leases, x for exclusive holders

    private Contender(CuratorFramework client, String parent, String letter) {
        this.client = client;
        this.parent = parent;
        this.letter = letter;
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[1], SESSION_MS, SESSION_MS, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        String letter = args[0].equals("read") ? "r" : args[0].equals("semaphore") ? "l" : "x";
        new Contender(client, args[2], letter).run(args[0]);
    }

    private void run(String mode) throws Exception {
        InterProcessReadWriteLock sides = new InterProcessReadWriteLock(client, parent);
        switch (mode) {
            case "lock":
                lock(new InterProcessMutex(client, parent));
                break;
            case "write":
                lock(sides.writeLock());
                break;
            case "read":
                lock(sides.readLock());
                break;
            case "semaphore":
                semaphore();
                break;
            case "latch":
                latch();
                break;
            case "selector":
                selector();
                break;
            case "apache":
                apache();
                break;
            default:
                throw new IllegalArgumentException(mode);
        }
    }

    private void lock(InterProcessMutex lock) throws Exception {
        while (true) {
            obtained(lock.acquire(WAIT_S, TimeUnit.SECONDS));
            inside();
            lock.release();
        }
    }

    private void semaphore() throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, parent, LEASES);
        while (true) {
            Lease lease = semaphore.acquire(WAIT_S, TimeUnit.SECONDS);
            obtained(lease != null);
            inside();
            semaphore.returnLease(lease);
        }
    }

    private void latch() throws Exception {
        while (true) {
            LeaderLatch latch = new LeaderLatch(client, parent, "curator");
            latch.start();
            obtained(latch.await(WAIT_S, TimeUnit.SECONDS));
            inside();
            latch.close();
        }
    }

    private void selector() throws Exception {
        LeaderSelector selector =
                new LeaderSelector(
                        client,
                        parent,
                        new LeaderSelectorListenerAdapter() {
                            @Override
                            public void takeLeadership(CuratorFramework c) {
                                try {
                                    inside();
                                } catch (Exception e) {
                                    fail(e.toString());
                                }
                            }
                        });
        selector.autoRequeue();
        selector.start();
        Thread.currentThread().join();
    }

    /** Apache's election fails if another bid disappears while it reads: then it is tried again. */
    private void apache() throws Exception {
        while (true) {
            CountDownLatch over = new CountDownLatch(1), leads = new CountDownLatch(1);
            LeaderElectionSupport support = new LeaderElectionSupport();
            support.setZooKeeper(client.getZookeeperClient().getZooKeeper());
            support.setRootNodeName(parent);
            support.setHostName("apache");
            support.addListener(
                    event -> {
                        switch (event) {
                            case ELECTED_COMPLETE:
                                leads.countDown();
                                over.countDown();
                                break;
                            case FAILED:
                                over.countDown();
                                break;
                            default:
                        }
                    });
            support.start();
            obtained(over.await(WAIT_S, TimeUnit.SECONDS));
            if (leads.getCount() == 0) {
                inside();
            }
            support.stop();
        }
    }

    /** Shows that it holds, and checks that no other client does. */
    private void inside() throws Exception {
        say("@holds");
        String me = letter + "-" + UUID.randomUUID();
        client.create().withMode(CreateMode.EPHEMERAL).forPath(parent + "-inside/" + me);
        List<String> all = client.getChildren().forPath(parent + "-inside");
        long others = all.stream().filter(name -> !name.equals(me) && !(letter.equals("r") && name.startsWith("r"))).count();
        if (others > (letter.equals("l") ? LEASES - 1 : 0)) {
            say("@two " + all);
        }
        Thread.sleep(ThreadLocalRandom.current().nextInt(5, 30));
        client.delete().forPath(parent + "-inside/" + me);
        say("@free");
    }

    private static void obtained(boolean yes) {
        if (!yes) {
            fail("nothing within " + WAIT_S + " s");
        }
    }

    private static void fail(String why) {
        say("failed: " + why);
        System.exit(1);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

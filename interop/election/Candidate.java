import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;

/**
 * A Java candidate in a line with others. Run as {@code Candidate KIND ADDRESS PARENT}, where KIND is
 * latch, selector (Curator) or apache (LeaderElectionSupport). Prints @stands when its bid exists and
 * @leads when it leads, and resigns when the znode PARENT-release exists.
 */
public final class Candidate {
    private static final int SESSION_MS = 10_000;
    private static final long WAIT_MS = 180_000;

    public static void main(String[] args) throws Exception {
        String address = args[1], parent = args[2];
        switch (args[0]) {
            case "latch":
                curator(address, parent, false);
                break;
            case "selector":
                curator(address, parent, true);
                break;
            case "apache":
                apache(address, parent);
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static void curator(String address, String parent, boolean selector) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(address, SESSION_MS, SESSION_MS, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        Callable<Boolean> released = () -> client.checkExists().forPath(parent + "-release") != null;
        if (selector) {
            select(client, parent, released);
        } else {
            LeaderLatch latch = new LeaderLatch(client, parent, "foreign");
            latch.start();
            until(() -> ours(client, parent));
            say("@stands");
            if (!latch.await(WAIT_MS, TimeUnit.MILLISECONDS)) {
                throw new AssertionError("the latch does not lead");
            }
            say("@leads");
            until(released);
            latch.close();
        }
        client.close();
    }

    private static void select(CuratorFramework client, String parent, Callable<Boolean> released) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        LeaderSelector selector =
                new LeaderSelector(
                        client,
                        parent,
                        new LeaderSelectorListenerAdapter() {
                            @Override
                            public void takeLeadership(CuratorFramework c) throws Exception {
                                say("@leads");
                                until(released);
                                done.countDown();
                            }
                        });
        selector.setId("foreign");
        selector.start();
        until(() -> ours(client, parent));
        say("@stands");
        if (!done.await(WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new AssertionError("the selector does not lead");
        }
        selector.close();
    }

    private static boolean ours(CuratorFramework client, String parent) throws Exception {
        for (String child : client.getChildren().forPath(parent)) {
            if (child.matches(".*(latch|lock)-.*")
                    && new String(client.getData().forPath(parent + "/" + child), StandardCharsets.UTF_8).equals("foreign")) {
                return true;
            }
        }
        return false;
    }

    private static void apache(String address, String parent) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(address, SESSION_MS, event -> connected.countDown());
        connected.await();
        CountDownLatch stands = new CountDownLatch(1), leads = new CountDownLatch(1);
        LeaderElectionSupport support = new LeaderElectionSupport();
        support.setZooKeeper(zk);
        support.setRootNodeName(parent);
        support.setHostName("foreign");
        support.addListener(
                event -> {
                    switch (event) {
                        case READY_COMPLETE:
                            stands.countDown();
                            break;
                        case ELECTED_COMPLETE:
                            leads.countDown();
                            break;
                        case FAILED:
                            System.err.println("the election failed");
                            System.exit(1);
                            break;
                        default:
                    }
                });
        support.start();
        await(stands);
        say("@stands");
        await(leads);
        say("@leads");
        until(() -> zk.exists(parent + "-release", false) != null);
        support.stop();
        zk.close();
    }

    private static void await(CountDownLatch latch) throws Exception {
        if (!latch.await(WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new AssertionError("no event of the election in time");
        }
    }

    private static void until(Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("the expected znode does not appear in time");
            }
            Thread.sleep(10);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

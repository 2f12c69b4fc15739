import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * Curator's InterProcessMutex as one contender of many. Run as {@code Contender ADDRESS PARENT}. Again and
 * again it takes the lock, prints @holds, makes the ephemeral PARENT-inside, which must not be there,
 * and removes it, prints @free and lets go, until it is killed.
 */
public final class Contender {
    private static final int SESSION_MS = 3_000;
    private static final long WAIT_S = 60;

    public static void main(String[] args) throws Exception {
        String parent = args[1], inside = parent + "-inside";
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], SESSION_MS, SESSION_MS, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex lock = new InterProcessMutex(client, parent);
        while (true) {
            if (!lock.acquire(WAIT_S, TimeUnit.SECONDS)) {
                throw new AssertionError("no lock within " + WAIT_S + " s");
            }
            say("@holds");
            try {
                client.create().withMode(CreateMode.EPHEMERAL).forPath(inside);
            } catch (KeeperException.NodeExistsException e) {
                say("@two");
            }
            Thread.sleep(ThreadLocalRandom.current().nextInt(5, 30));
            client.delete().forPath(inside);
            say("@free");
            lock.release();
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

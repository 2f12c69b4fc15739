import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.RetryOneTime;

/**
 * A Java member of a double barrier with others. Run as {@code Meeting ADDRESS PATH MEMBERS}. Prints
 * @in when it has entered, leaves when the znode PATH-leave exists, and then prints @out.
 */
public final class Meeting {
    private static final int SESSION_MS = 10_000;
    private static final long WAIT_MS = 180_000;

    public static void main(String[] args) throws Exception {
        String path = args[1];
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], SESSION_MS, SESSION_MS, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, Integer.parseInt(args[2]));
        if (!barrier.enter(WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new AssertionError("the member has not entered in time");
        }
        say("@in");
        long end = System.currentTimeMillis() + WAIT_MS;
        while (client.checkExists().forPath(path + "-leave") == null) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError("the member was not told to leave in time");
            }
            Thread.sleep(10);
        }
        if (!barrier.leave(WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new AssertionError("the member has not left in time");
        }
        say("@out");
        client.close();
        System.exit(0);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

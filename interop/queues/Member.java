import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.RetryOneTime;

/**
 * A Java member of a double barrier, which the test kills. Run as {@code Member ADDRESS PATH MEMBERS}. Prints
 * @in when it has entered, leaves at the end of its input, and prints @out.
 */
public final class Member {
    private static final int SESSION_MS = 3_000;
    private static final long WAIT_S = 60;

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], SESSION_MS, SESSION_MS, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, args[1], Integer.parseInt(args[2]));
        if (!barrier.enter(WAIT_S, TimeUnit.SECONDS)) {
            throw new AssertionError("the member has not entered in time");
        }
        System.out.println("@in");
        System.in.read();
        if (!barrier.leave(WAIT_S, TimeUnit.SECONDS)) {
            throw new AssertionError("the member has not left in time");
        }
        System.out.println("@out");
        System.exit(0);
    }
}

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

/**
 * What the Curator programs share: sessions, waiting, and the test's proxy.
 *
 * <p>Each program is run as {@code java Program DIRECT PROXY}: two addresses of
 * one server that is the program's own, the second of which can be cut. It ends
 * with 1 and a stack trace when an expectation does not hold.
 */
final class Check {
    static final long WAIT_MS = 180_000;
    static final int SESSION_MS = 50_000; // on a busy machine, a server starts in this time
    static final int SHORT_SESSION_MS = 10_000; // for sessions that the test loses
    static String direct;
    static String proxy;

    private Check() {}

    /** The body of a program; it may throw anything. */
    interface Body {
        void run() throws Exception;
    }

    /** Runs a program's body and ends the process, also when threads are left. */
    static void main(String[] args, Body body) {
        direct = args[0];
        proxy = args[1];
        try {
            body.run();
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** Returns a started client that is connected. */
    static CuratorFramework connect(String hosts) throws Exception {
        return connect(hosts, SESSION_MS);
    }

    /** Returns a started client that is connected, with a session timeout in milliseconds. */
    static CuratorFramework connect(String hosts, int sessionMs) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(hosts)
                        .sessionTimeoutMs(sessionMs)
                        .connectionTimeoutMs(SHORT_SESSION_MS)
                        .retryPolicy(new RetryForever(50))
                        .build();
        client.start();
        check(client.blockUntilConnected((int) WAIT_MS, TimeUnit.MILLISECONDS), "no connection to %s", hosts);
        return client;
    }

    /** Returns the later connection states of the client. */
    static BlockingQueue<ConnectionState> states(CuratorFramework client) {
        BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        client.getConnectionStateListenable().addListener((c, state) -> states.add(state));
        return states;
    }

    /** Takes values until the expected one arrives. */
    static <T> void await(BlockingQueue<T> queue, T want) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        for (T got = null; !want.equals(got); ) {
            got = queue.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            check(got != null, "not within %d ms: %s", WAIT_MS, want);
        }
    }

    /** Takes the next value, which must be the expected one. */
    static <T> void next(BlockingQueue<T> queue, T want) throws Exception {
        T got = queue.poll(WAIT_MS, TimeUnit.MILLISECONDS);
        check(want.equals(got), "got %s, want %s", got, want);
    }

    /** Polls a condition for which there is no callback. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        while (!condition.call()) {
            check(System.nanoTime() < end, "not within %d ms: %s", WAIT_MS, what);
            Thread.sleep(10);
        }
    }

    static void check(boolean holds, String message, Object... args) {
        if (!holds) {
            throw new AssertionError(String.format(message, args));
        }
    }

    static void equal(Object got, Object want, String what) {
        check(Objects.deepEquals(got, want), "%s: got %s, want %s", what, show(got), show(want));
    }

    /** Checks that a call fails with exactly this class of exception. */
    static void refused(Class<? extends Exception> want, Callable<?> call) {
        Object got;
        try {
            got = call.call();
        } catch (Exception e) {
            if (e.getClass() != want) {
                throw new AssertionError("want " + want, e);
            }
            return;
        }
        throw new AssertionError("got " + show(got) + ", want " + want);
    }

    /** Prints a command for the test: @cut, @down or @up. */
    static void ask(String command) {
        System.out.println(command);
        System.out.flush();
    }

    static byte[] bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    private static String show(Object value) {
        return value instanceof byte[] ? Arrays.toString((byte[]) value) : String.valueOf(value);
    }
}

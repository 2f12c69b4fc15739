import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;

/** Curator's InterProcessMutex and its relatives. */
public final class Locks {
    private static final int CLIENTS = 4;
    private static final List<CuratorFramework> clients = new ArrayList<>();

    public static void main(String[] args) {
        Check.main(
                args,
                () -> {
                    for (int i = 0; i < CLIENTS; i++) {
                        clients.add(Check.connect(Check.direct));
                    }
                    mutex();
                    mutexIsReentrantAndRefuses();
                    readersAndWriter();
                    semaphore();
                    counters();
                    doubleBarrier();
                    clients.forEach(CuratorFramework::close);
                });
    }

    /** The work of each client. */
    private interface ClientBody {
        void run(CuratorFramework client) throws Exception;
    }

    /** Runs the body for every client at the same time and waits for all. */
    private static void each(ClientBody body) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        List<Future<?>> running = new ArrayList<>();
        for (CuratorFramework client : clients) {
            running.add(
                    threads.submit(
                            () -> {
                                body.run(client);
                                return null;
                            }));
        }
        for (Future<?> one : running) {
            one.get(Check.WAIT_MS, TimeUnit.MILLISECONDS);
        }
        threads.shutdown();
    }

    private static void mutex() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        int[] count = {0};
        each(
                client -> {
                    InterProcessMutex lock = new InterProcessMutex(client, "/mutex");
                    for (int i = 0; i < 15; i++) {
                        Check.check(lock.acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS), "no turn");
                        Check.equal(inside.incrementAndGet(), 1, "holders at once");
                        count[0]++;
                        inside.decrementAndGet();
                        lock.release();
                    }
                });
        Check.equal(count[0], 15 * CLIENTS, "turns");
    }

    private static void mutexIsReentrantAndRefuses() throws Exception {
        InterProcessMutex one = new InterProcessMutex(clients.get(0), "/held");
        InterProcessMutex two = new InterProcessMutex(clients.get(1), "/held");
        one.acquire();
        one.acquire();
        Check.equal(one.getParticipantNodes().size(), 1, "nodes of one holder");
        Check.check(!two.acquire(200, TimeUnit.MILLISECONDS), "a held lock was given");
        one.release();
        Check.check(!two.acquire(0, TimeUnit.MILLISECONDS), "a lock that is held once more was given");
        one.release();
        Check.check(two.acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS), "a released lock was not given");
        two.release();
    }

    private static void readersAndWriter() throws Exception {
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(clients.get(0), "/rw");
        InterProcessReadWriteLock two = new InterProcessReadWriteLock(clients.get(1), "/rw");
        one.readLock().acquire();
        Check.check(two.readLock().acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS), "readers do not share");
        two.readLock().release();
        Check.check(!two.writeLock().acquire(100, TimeUnit.MILLISECONDS), "writer beside a reader");
        one.readLock().release();
        Check.check(two.writeLock().acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS), "no turn for the writer");
        Check.check(!one.readLock().acquire(100, TimeUnit.MILLISECONDS), "reader beside a writer");
        two.writeLock().release();
    }

    private static void semaphore() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        each(
                client -> {
                    InterProcessSemaphoreV2 slots = new InterProcessSemaphoreV2(client, "/semaphore", 2);
                    for (int i = 0; i < 5; i++) {
                        Lease lease = slots.acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS);
                        Check.check(lease != null, "no lease");
                        Check.check(inside.incrementAndGet() <= 2, "more than two leases");
                        inside.decrementAndGet();
                        slots.returnLease(lease);
                    }
                });
    }

    private static void counters() throws Exception {
        each(
                client -> {
                    DistributedAtomicLong counter =
                            new DistributedAtomicLong(client, "/atomic", new RetryNTimes(1000, 1));
                    for (int i = 0; i < 10; i++) {
                        Check.check(counter.increment().succeeded(), "increment did not succeed");
                    }
                });
        DistributedAtomicLong counter = new DistributedAtomicLong(clients.get(0), "/atomic", new RetryNTimes(0, 1));
        Check.equal(counter.get().postValue(), 10L * CLIENTS, "atomic counter");

        SharedCount shared = new SharedCount(clients.get(0), "/shared", 7);
        SharedCount seen = new SharedCount(clients.get(1), "/shared", 0);
        shared.start();
        seen.start();
        shared.setCount(8);
        Check.until("the shared count is seen", () -> seen.getCount() == 8);
        shared.close();
        seen.close();
    }

    private static void doubleBarrier() throws Exception {
        AtomicInteger came = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        // Curator 5.4.0 waits for ever in enter if it is told that all came before it looks itself, and somebody has left
        // meanwhile. So nobody leaves before all have entered.
        CountDownLatch entered = new CountDownLatch(CLIENTS);
        each(
                client -> {
                    DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, "/barrier", CLIENTS);
                    came.incrementAndGet();
                    Check.check(barrier.enter(Check.WAIT_MS, TimeUnit.MILLISECONDS), "not all came");
                    Check.equal(came.get(), CLIENTS, "those who came when one entered");
                    entered.countDown();
                    Check.check(entered.await(Check.WAIT_MS, TimeUnit.MILLISECONDS), "not all entered");
                    done.incrementAndGet();
                    Check.check(barrier.leave(Check.WAIT_MS, TimeUnit.MILLISECONDS), "not all left");
                    Check.equal(done.get(), CLIENTS, "those who were done when one left");
                });
    }
}

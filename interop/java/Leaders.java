import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Curator's LeaderLatch and LeaderSelector. */
public final class Leaders {
    public static void main(String[] args) {
        Check.main(
                args,
                () -> {
                    handOver();
                    sessionClosed();
                    sessionLost();
                    selectorTakesTurns();
                    selectorInterrupted();
                });
    }

    /** One latch leads at a time, and all agree on which; closing it passes leadership on. */
    private static void handOver() throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        List<LeaderLatch> latches = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            clients.add(Check.connect(Check.direct));
            latches.add(new LeaderLatch(clients.get(i), "/latch", "candidate-" + i));
            latches.get(i).start();
        }
        Set<String> led = new HashSet<>();
        while (!latches.isEmpty()) {
            LeaderLatch leader = onlyLeader(latches);
            for (LeaderLatch latch : latches) {
                Check.equal(latch.getLeader().getId(), leader.getId(), "leader as seen by " + latch.getId());
                Check.equal(latch.getParticipants().size(), latches.size(), "participants");
            }
            Check.check(led.add(leader.getId()), "%s leads twice", leader.getId());
            latches.remove(leader);
            leader.close();
        }
        clients.forEach(CuratorFramework::close);
    }

    private static LeaderLatch onlyLeader(List<LeaderLatch> latches) throws Exception {
        Check.until("a latch that leads", () -> latches.stream().anyMatch(LeaderLatch::hasLeadership));
        Check.equal(latches.stream().filter(LeaderLatch::hasLeadership).count(), 1L, "leaders");
        return latches.stream().filter(LeaderLatch::hasLeadership).findFirst().get();
    }

    /** When the leader's session is closed, the next candidate leads. */
    private static void sessionClosed() throws Exception {
        CuratorFramework first = Check.connect(Check.direct);
        CuratorFramework second = Check.connect(Check.direct);
        LeaderLatch gone = new LeaderLatch(first, "/closed", "gone");
        gone.start();
        gone.await();
        LeaderLatch next = new LeaderLatch(second, "/closed", "next");
        next.start();
        Check.check(!next.await(100, TimeUnit.MILLISECONDS), "two leaders");
        first.close();
        Check.check(next.await(Check.WAIT_MS, TimeUnit.MILLISECONDS), "nobody leads");
        next.close();
        second.close();
    }

    /** A leader without a connection stops, the next one leads, and the first one returns as a candidate. */
    private static void sessionLost() throws Exception {
        CuratorFramework away = Check.connect(Check.proxy, Check.SHORT_SESSION_MS);
        CuratorFramework second = Check.connect(Check.direct);
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        LeaderLatch first = new LeaderLatch(away, "/lost", "first");
        first.addListener(
                new LeaderLatchListener() {
                    @Override
                    public void isLeader() {
                        told.add("leads");
                    }

                    @Override
                    public void notLeader() {
                        told.add("does not lead");
                    }
                });
        first.start();
        Check.next(told, "leads");
        LeaderLatch next = new LeaderLatch(second, "/lost", "next");
        next.start();
        Check.until("both are candidates", () -> next.getParticipants().size() == 2);
        Check.ask("@down");
        Check.next(told, "does not lead");
        Check.check(next.await(Check.WAIT_MS, TimeUnit.MILLISECONDS), "nobody leads");
        Check.ask("@up");
        Check.until("the first is a candidate again", () -> next.getParticipants().contains(new Participant("first", false)));
        next.close();
        Check.next(told, "leads");
        first.close();
        away.close();
        second.close();
    }

    /** Selectors that queue again after each term all lead in turn, never two at once. */
    private static void selectorTakesTurns() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        List<CountDownLatch> turns = new ArrayList<>();
        List<LeaderSelector> selectors = new ArrayList<>();
        List<CuratorFramework> clients = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            CountDownLatch mine = new CountDownLatch(3);
            LeaderSelectorListenerAdapter body =
                    new LeaderSelectorListenerAdapter() {
                        @Override
                        public void takeLeadership(CuratorFramework client) {
                            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                            mine.countDown();
                            inside.decrementAndGet();
                        }
                    };
            CuratorFramework client = Check.connect(Check.direct);
            LeaderSelector selector = new LeaderSelector(client, "/selector", body);
            selector.autoRequeue();
            clients.add(client);
            selectors.add(selector);
            turns.add(mine);
        }
        selectors.forEach(LeaderSelector::start);
        for (CountDownLatch mine : turns) {
            Check.check(mine.await(Check.WAIT_MS, TimeUnit.MILLISECONDS), "%d turns are left", mine.getCount());
        }
        Check.equal(most.get(), 1, "leaders at once");
        selectors.forEach(LeaderSelector::close);
        clients.forEach(CuratorFramework::close);
    }

    /** A leader whose leadership is taken away is interrupted. */
    private static void selectorInterrupted() throws Exception {
        CuratorFramework away = Check.connect(Check.proxy);
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        LeaderSelector selector =
                new LeaderSelector(
                        away,
                        "/interrupted",
                        new LeaderSelectorListenerAdapter() {
                            @Override
                            public void takeLeadership(CuratorFramework c) {
                                told.add("leads");
                                try {
                                    new CountDownLatch(1).await();
                                } catch (InterruptedException e) {
                                    told.add("interrupted");
                                }
                            }
                        });
        selector.autoRequeue();
        selector.start();
        Check.next(told, "leads");
        Check.ask("@down");
        Check.next(told, "interrupted");
        Check.ask("@up");
        Check.next(told, "leads");
        selector.close();
        away.close();
    }
}

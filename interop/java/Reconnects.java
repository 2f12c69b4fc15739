import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;

/** Lost connections and lost sessions under Curator. */
public final class Reconnects {
    public static void main(String[] args) {
        Check.main(
                args,
                () -> {
                    CuratorFramework other = Check.connect(Check.direct);
                    cut(other);
                    persistentWatchIsSetAgain(other);
                    lost(other);
                    serverKilled();
                    other.close();
                });
    }

    /** Session, ephemerals, watches and a lock survive a cut connection. */
    private static void cut(CuratorFramework other) throws Exception {
        CuratorFramework client = Check.connect(Check.proxy);
        BlockingQueue<ConnectionState> states = Check.states(client);
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        Watcher note =
                event -> {
                    if (event.getPath() != null) {
                        seen.add(event.getType() + " " + event.getPath());
                    }
                };
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/e");
        client.create().forPath("/data");
        client.getData().usingWatcher(note).forPath("/data");
        client.checkExists().usingWatcher(note).forPath("/later");
        InterProcessMutex lock = new InterProcessMutex(client, "/lock");
        lock.acquire();

        Check.ask("@down");
        Check.await(states, ConnectionState.SUSPENDED);
        other.setData().forPath("/data", Check.bytes("new"));
        Check.ask("@up");
        Check.await(states, ConnectionState.RECONNECTED);
        Check.equal(client.getZookeeperClient().getZooKeeper().getSessionId(), session, "session");
        Check.next(seen, "NodeDataChanged /data");
        other.create().forPath("/later");
        Check.next(seen, "NodeCreated /later");
        Check.check(other.checkExists().forPath("/e") != null, "the ephemeral is gone");
        InterProcessMutex second = new InterProcessMutex(other, "/lock");
        Check.check(!second.acquire(100, TimeUnit.MILLISECONDS), "a held lock was given");
        lock.release();
        Check.check(second.acquire(Check.WAIT_MS, TimeUnit.MILLISECONDS), "a released lock was not given");
        second.release();
        client.close();
    }

    /** A persistent recursive watch is part of what the client restores. */
    private static void persistentWatchIsSetAgain(CuratorFramework other) throws Exception {
        CuratorFramework client = Check.connect(Check.proxy);
        BlockingQueue<ConnectionState> states = Check.states(client);
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        PersistentWatcher watcher = new PersistentWatcher(client, "/data", true);
        watcher.getListenable()
                .addListener(
                        event -> {
                            if (event.getPath() != null) {
                                seen.add(event.getType() + " " + event.getPath());
                            }
                        });
        watcher.start();
        Check.until(
                "the watch is set",
                () -> {
                    other.setData().forPath("/data", Check.bytes("again"));
                    return !seen.isEmpty();
                });
        Check.ask("@cut");
        Check.await(states, ConnectionState.RECONNECTED);
        client.checkExists().forPath("/data"); // answered after the watches are set again
        other.create().forPath("/data/deep");
        Check.await(seen, "NodeCreated /data/deep");
        client.close();
    }

    /** A lost session is reported, and persistent ephemerals are created again in the next one. */
    private static void lost(CuratorFramework other) throws Exception {
        CuratorFramework client = Check.connect(Check.proxy, Check.SHORT_SESSION_MS);
        BlockingQueue<ConnectionState> states = Check.states(client);
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/gone");
        PersistentNode stays = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/stays", Check.bytes("v"));
        stays.start();
        Check.check(stays.waitForInitialCreate(Check.WAIT_MS, TimeUnit.MILLISECONDS), "no persistent node");
        long owner = other.checkExists().forPath("/stays").getEphemeralOwner();
        GroupMember member = new GroupMember(client, "/group", "one", Check.bytes("here"));
        member.start();
        Check.ask("@down");
        Check.await(states, ConnectionState.LOST);
        Check.until("the session's ephemeral is deleted", () -> other.checkExists().forPath("/gone") == null);
        Check.ask("@up");
        Check.await(states, ConnectionState.RECONNECTED);
        Check.until("the node is there again", () -> other.checkExists().forPath("/stays") != null);
        Check.check(other.checkExists().forPath("/stays").getEphemeralOwner() != owner, "the session came back");
        Check.until("the member is there again", () -> other.checkExists().forPath("/group/one") != null);
        member.close();
        stays.close();
        client.close();
    }

    /** Sessions, ephemerals and locks survive a kill and restart of the server. */
    private static void serverKilled() throws Exception {
        CuratorFramework client = Check.connect(Check.direct);
        BlockingQueue<ConnectionState> states = Check.states(client);
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        InterProcessMutex lock = new InterProcessMutex(client, "/killed");
        lock.acquire();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/survives", Check.bytes("v"));
        Watcher note = event -> seen.add(event.getType() + " " + event.getPath());
        client.getChildren().usingWatcher(note).forPath("/killed");
        Check.ask("@restart");
        Check.await(states, ConnectionState.SUSPENDED);
        Check.await(states, ConnectionState.RECONNECTED);
        Check.equal(client.getZookeeperClient().getZooKeeper().getSessionId(), session, "session");
        Check.equal(client.getData().forPath("/survives"), Check.bytes("v"), "data of the ephemeral");
        Check.check(lock.isOwnedByCurrentThread(), "the lock is not held");
        lock.release();
        // The loss of the connection comes first, because a watcher gets it too.
        Check.await(seen, "NodeChildrenChanged /killed");
        client.close();
    }
}

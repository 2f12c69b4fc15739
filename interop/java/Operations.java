import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Apache's Java client, through Curator and directly: operations that the command line lacks. */
public final class Operations {
    public static void main(String[] args) {
        Check.main(
                args,
                () -> {
                    CuratorFramework client = Check.connect(Check.direct);
                    createModes(client);
                    dataAndVersions(client);
                    transactions(client);
                    multiRead(client.getZookeeperClient().getZooKeeper());
                    acls(client);
                    watches(client);
                    persistentWatches(client);
                    others(client.getZookeeperClient().getZooKeeper());
                    client.close();
                });
    }

    private static void createModes(CuratorFramework client) throws Exception {
        Check.equal(client.create().creatingParentContainersIfNeeded().forPath("/box/node"), "/box/node", "create");
        client.delete().forPath("/box/node");
        Check.until("the emptied container is deleted", () -> client.checkExists().forPath("/box") == null);

        client.create().withTtl(100).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl");
        Check.until("the TTL node is deleted", () -> client.checkExists().forPath("/ttl") == null);

        Stat stat = new Stat();
        String path = client.create().storingStatIn(stat).withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/e-");
        Check.equal(path, "/e-0000000002", "sequential path");
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        Check.equal(stat.getEphemeralOwner(), session, "owner in the stat of create2");
        Check.refused(
                KeeperException.NoChildrenForEphemeralsException.class, () -> client.create().forPath(path + "/child"));

        String guarded = client.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/p-");
        Check.check(guarded.matches("/_c_[-0-9a-f]{36}-p-0000000003"), "protected path %s", guarded);
        Check.refused(KeeperException.NodeExistsException.class, () -> client.create().forPath(path));
        Check.refused(KeeperException.NoNodeException.class, () -> client.create().forPath("/none/child"));
        client.create().orSetData().forPath("/either", Check.bytes("1"));
        client.create().orSetData().forPath("/either", Check.bytes("2"));
        Check.equal(client.getData().forPath("/either"), Check.bytes("2"), "data after create or set");
    }

    private static void dataAndVersions(CuratorFramework client) throws Exception {
        client.create().forPath("/d", Check.bytes("0"));
        Check.equal(client.setData().withVersion(0).forPath("/d", Check.bytes("1")).getVersion(), 1, "version");
        Check.refused(
                KeeperException.BadVersionException.class,
                () -> client.setData().withVersion(0).forPath("/d", Check.bytes("2")));
        Check.refused(KeeperException.NoNodeException.class, () -> client.getData().forPath("/none"));
        Check.refused(
                KeeperException.BadVersionException.class, () -> client.delete().withVersion(7).forPath("/d"));
        client.create().forPath("/d/child");
        Check.refused(KeeperException.NotEmptyException.class, () -> client.delete().forPath("/d"));
        client.setData().compressed().forPath("/d", Check.bytes("packed"));
        Check.equal(client.getData().decompressed().forPath("/d"), Check.bytes("packed"), "compressed data");
        client.delete().guaranteed().deletingChildrenIfNeeded().forPath("/d");
        Check.equal(client.checkExists().forPath("/d"), null, "stat after the deletion");
    }

    private static void transactions(CuratorFramework client) throws Exception {
        List<CuratorTransactionResult> results =
                client.transaction()
                        .forOperations(
                                client.transactionOp().create().forPath("/t", Check.bytes("1")),
                                client.transactionOp()
                                        .create()
                                        .withMode(CreateMode.PERSISTENT_SEQUENTIAL)
                                        .forPath("/t/s-"),
                                client.transactionOp().create().withMode(CreateMode.CONTAINER).forPath("/t/box"),
                                client.transactionOp()
                                        .create()
                                        .withTtl(3_600_000)
                                        .withMode(CreateMode.PERSISTENT_WITH_TTL)
                                        .forPath("/t/ttl"),
                                client.transactionOp().setData().withVersion(0).forPath("/t", Check.bytes("2")),
                                client.transactionOp().check().withVersion(1).forPath("/t"),
                                client.transactionOp().delete().forPath("/t/box"));
        Check.equal(results.size(), 7, "results");
        Check.equal(results.get(1).getResultPath(), "/t/s-0000000000", "path of the sequential create");
        Check.equal(results.get(4).getResultStat().getVersion(), 1, "version after the set");
        Check.refused(
                KeeperException.BadVersionException.class,
                () ->
                        client.transaction()
                                .forOperations(
                                        client.transactionOp().setData().forPath("/t", Check.bytes("3")),
                                        client.transactionOp().check().withVersion(99).forPath("/t")));
        Check.equal(client.getData().forPath("/t"), Check.bytes("2"), "data after the failed transaction");
    }

    private static void multiRead(ZooKeeper zk) throws Exception {
        List<OpResult> results =
                zk.multi(List.of(Op.getData("/t"), Op.getChildren("/t"), Op.getData("/none"), Op.getData("/t")));
        Check.equal(((OpResult.GetDataResult) results.get(0)).getData(), Check.bytes("2"), "data");
        Check.equal(
                List.of("s-0000000000", "ttl"),
                ((OpResult.GetChildrenResult) results.get(1)).getChildren().stream().sorted().toList(),
                "children");
        Check.equal(((OpResult.ErrorResult) results.get(2)).getErr(), KeeperException.Code.NONODE.intValue(), "error");
        Check.equal(((OpResult.GetDataResult) results.get(3)).getStat().getVersion(), 1, "version");
    }

    private static void acls(CuratorFramework client) throws Exception {
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        Check.refused(
                KeeperException.InvalidACLException.class,
                () -> client.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl"));
        zk.addAuthInfo("digest", Check.bytes("ann:secret"));
        client.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl", Check.bytes("v"));
        CuratorFramework other = Check.connect(Check.direct);
        Check.refused(KeeperException.NoAuthException.class, () -> other.getData().forPath("/acl"));
        List<ACL> local = List.of(new ACL(ZooDefs.Perms.READ, new Id("ip", "127.0.0.0/8")));
        Check.equal(client.setACL().withVersion(0).withACL(local).forPath("/acl").getAversion(), 1, "aversion");
        Check.equal(other.getData().forPath("/acl"), Check.bytes("v"), "data for the address");
        Check.refused(
                KeeperException.NoAuthException.class, () -> other.setData().forPath("/acl", Check.bytes("w")));
        Check.equal(other.getACL().forPath("/acl"), local, "the ACL");
        List<String> schemes = zk.whoAmI().stream().map(ClientInfo::getAuthScheme).sorted().toList();
        Check.equal(schemes, List.of("digest", "ip"), "schemes of whoAmI");
        other.close();
    }

    private static void watches(CuratorFramework client) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        Watcher note = event -> seen.add(event.getType() + " " + event.getPath());
        client.checkExists().usingWatcher(note).forPath("/w");
        client.create().forPath("/w");
        Check.next(seen, "NodeCreated /w");
        client.getData().usingWatcher(note).forPath("/w");
        client.getChildren().usingWatcher(note).forPath("/w");
        client.create().forPath("/w/child");
        Check.next(seen, "NodeChildrenChanged /w");
        client.setData().forPath("/w");
        Check.next(seen, "NodeDataChanged /w");
        client.getData().usingWatcher(note).forPath("/w");
        client.watchers().remove(note).ofType(Watcher.WatcherType.Data).forPath("/w");
        Check.next(seen, "DataWatchRemoved /w");
        Check.refused(
                KeeperException.NoWatcherException.class,
                () -> {
                    client.watchers().remove(note).ofType(Watcher.WatcherType.Data).forPath("/w");
                    return null;
                });
    }

    private static void persistentWatches(CuratorFramework client) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        Watcher note = event -> seen.add(event.getType() + " " + event.getPath());
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        zk.addWatch("/pw", note, AddWatchMode.PERSISTENT);
        client.create().forPath("/pw");
        client.create().forPath("/pw/a");
        client.create().forPath("/pw/a/b");
        client.setData().forPath("/pw");
        client.delete().deletingChildrenIfNeeded().forPath("/pw");
        for (String want :
                List.of("NodeCreated", "NodeChildrenChanged", "NodeDataChanged", "NodeChildrenChanged", "NodeDeleted")) {
            Check.next(seen, want + " /pw");
        }
        zk.removeWatches("/pw", note, Watcher.WatcherType.Any, false);
        Check.next(seen, "PersistentWatchRemoved /pw");
    }

    private static void others(ZooKeeper zk) throws Exception {
        zk.create("/n", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create("/n/e", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        Check.equal(zk.getData("/n", false, null), null, "null data");
        Check.equal(zk.getAllChildrenNumber("/n"), 1, "children in all");
        Check.equal(zk.getEphemerals("/n"), List.of("/n/e"), "ephemerals of the session");
        BlockingQueue<String> synced = new LinkedBlockingQueue<>();
        zk.sync("/n", (code, path, context) -> synced.add(code + " " + path), null);
        Check.next(synced, "0 /n");
        Check.equal(zk.getConfig(false, new Stat()).length, 0, "length of a standalone server's configuration");
    }
}

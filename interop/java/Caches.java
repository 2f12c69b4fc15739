import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;

/** Curator's caches: with persistent recursive watches, and with one-shot watches. */
@SuppressWarnings("deprecation") // many programs still use the older caches
public final class Caches {
    public static void main(String[] args) {
        Check.main(
                args,
                () -> {
                    CuratorFramework writer = Check.connect(Check.direct);
                    CuratorFramework reader = Check.connect(Check.proxy);
                    // In 3.8.0 the removal of a persistent watch breaks recursive watches
                    // that are set later, so the cache with such a watch is closed last.
                    persistentWatcher(reader, writer);
                    CuratorCache cache = curatorCache(reader, writer);
                    treeCache(reader, writer);
                    olderCaches(reader, writer);
                    cache.close();
                    reader.close();
                    writer.close();
                });
    }

    private static void persistentWatcher(CuratorFramework reader, CuratorFramework writer) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        PersistentWatcher watcher = new PersistentWatcher(reader, "/persistent", true);
        watcher.getListenable()
                .addListener(
                        event -> {
                            if (event.getPath() != null) {
                                seen.add(event.getType() + " " + event.getPath());
                            }
                        });
        watcher.start();
        Check.until("the watch is set", () -> touchSeen(writer, seen));
        writer.create().creatingParentsIfNeeded().forPath("/persistent/a/b", Check.bytes("1"));
        writer.setData().forPath("/persistent/a/b", Check.bytes("2"));
        writer.delete().deletingChildrenIfNeeded().forPath("/persistent/a");
        Check.await(seen, "NodeCreated /persistent/a");
        Check.next(seen, "NodeCreated /persistent/a/b");
        Check.next(seen, "NodeDataChanged /persistent/a/b");
        Check.next(seen, "NodeDeleted /persistent/a/b");
        Check.next(seen, "NodeDeleted /persistent/a");
    }

    private static boolean touchSeen(CuratorFramework writer, BlockingQueue<String> seen) throws Exception {
        if (writer.checkExists().forPath("/persistent") == null) {
            writer.create().forPath("/persistent");
        }
        writer.setData().forPath("/persistent", Check.bytes("x"));
        return seen.contains("NodeDataChanged /persistent");
    }

    /** Returns the cache, open; see main. */
    private static CuratorCache curatorCache(CuratorFramework reader, CuratorFramework writer) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        writer.create().creatingParentsIfNeeded().forPath("/cache/a", Check.bytes("1"));
        CuratorCache cache = CuratorCache.build(reader, "/cache");
        cache.listenable().addListener((type, before, after) -> seen.add(type + " " + path(before, after)));
        cache.start();
        awaitAll(seen, "NODE_CREATED /cache", "NODE_CREATED /cache/a");
        writer.setData().forPath("/cache/a", Check.bytes("2"));
        Check.next(seen, "NODE_CHANGED /cache/a");
        writer.create().forPath("/cache/b");
        Check.next(seen, "NODE_CREATED /cache/b");
        writer.delete().forPath("/cache/b");
        Check.next(seen, "NODE_DELETED /cache/b");

        BlockingQueue<?> states = Check.states(reader);
        Check.ask("@down");
        Check.until("disconnect", () -> !states.isEmpty());
        writer.setData().forPath("/cache/a", Check.bytes("3"));
        writer.create().forPath("/cache/c");
        Check.ask("@up");
        awaitAll(seen, "NODE_CHANGED /cache/a", "NODE_CREATED /cache/c");
        Check.equal(cache.get("/cache/a").get().getData(), Check.bytes("3"), "data in the cache");
        return cache;
    }

    private static String path(ChildData before, ChildData after) {
        return (after != null ? after : before).getPath();
    }

    /** Takes events, in any order, until each of these has arrived. */
    private static void awaitAll(BlockingQueue<String> seen, String... want) throws Exception {
        Set<String> missing = new HashSet<>(Arrays.asList(want));
        Check.until("all of " + missing, () -> {
            for (String event = seen.poll(); event != null; event = seen.poll()) {
                missing.remove(event);
            }
            return missing.isEmpty();
        });
    }

    private static void treeCache(CuratorFramework reader, CuratorFramework writer) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        writer.create().creatingParentsIfNeeded().forPath("/tree/a/b", Check.bytes("1"));
        TreeCache cache = new TreeCache(reader, "/tree");
        cache.getListenable()
                .addListener(
                        (c, event) ->
                                seen.add(
                                        event.getType()
                                                + (event.getData() == null ? "" : " " + event.getData().getPath())));
        cache.start();
        awaitAll(seen, "NODE_ADDED /tree", "NODE_ADDED /tree/a", "NODE_ADDED /tree/a/b", "INITIALIZED");
        writer.setData().forPath("/tree/a", Check.bytes("2"));
        Check.next(seen, "NODE_UPDATED /tree/a");
        writer.delete().forPath("/tree/a/b");
        Check.next(seen, "NODE_REMOVED /tree/a/b");
        Check.ask("@down");
        Check.next(seen, "CONNECTION_SUSPENDED");
        writer.create().forPath("/tree/c");
        Check.ask("@up");
        awaitAll(seen, "CONNECTION_RECONNECTED", "NODE_ADDED /tree/c");
        Check.equal(cache.getCurrentChildren("/tree").keySet(), Set.of("a", "c"), "children in the cache");
        cache.close();
    }

    private static void olderCaches(CuratorFramework reader, CuratorFramework writer) throws Exception {
        writer.create().creatingParentsIfNeeded().forPath("/old/a", Check.bytes("1"));
        NodeCache node = new NodeCache(reader, "/old/a");
        node.start(true);
        Check.equal(node.getCurrentData().getData(), Check.bytes("1"), "data in the node cache");
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        PathChildrenCache children = new PathChildrenCache(reader, "/old", true);
        children.getListenable().addListener((c, event) -> seen.add(show(event)));
        children.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        writer.create().forPath("/old/b");
        Check.next(seen, "CHILD_ADDED /old/b");
        writer.setData().forPath("/old/a", Check.bytes("2"));
        Check.next(seen, "CHILD_UPDATED /old/a");
        Check.until("the node cache follows", () -> Arrays.equals(node.getCurrentData().getData(), Check.bytes("2")));
        writer.delete().forPath("/old/b");
        Check.next(seen, "CHILD_REMOVED /old/b");
        children.close();
        node.close();
    }

    private static String show(PathChildrenCacheEvent event) {
        return event.getType() + " " + event.getData().getPath();
    }
}

import java.util.Collection;
import java.util.concurrent.Callable;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;

/**
 * A member of a group and an instance of a service, by Curator. Run as {@code java Registry
 * SERVER PREFIX}; it prints @seen when it sees the others and ends when PREFIX/release exists.
 */
public final class Registry {
    private static final long WAIT_MS = 180_000;

    private Registry() {}

    public static void main(String[] args) {
        try {
            run(args[0], args[1]);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void run(String server, String prefix) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(server, 10_000, 10_000, new RetryForever(50));
        client.start();
        GroupMember member = new GroupMember(client, prefix + "/group", "java", new byte[] {'j'});
        member.start();
        ServiceInstance<Void> web =
                ServiceInstance.<Void>builder().name("web").id("java").address("java.example").port(81).build();
        ServiceDiscovery<Void> discovery =
                ServiceDiscoveryBuilder.builder(Void.class)
                        .client(client)
                        .basePath(prefix + "/services")
                        .thisInstance(web)
                        .build();
        discovery.start();
        until("member go", () -> member.getCurrentMembers().containsKey("go"));
        until("instance go", () -> found(discovery.queryForInstances("web")));
        System.out.println("@seen");
        until("release", () -> client.checkExists().forPath(prefix + "/release") != null);
        discovery.close();
        member.close();
        client.close();
    }

    private static boolean found(Collection<ServiceInstance<Void>> all) {
        for (ServiceInstance<Void> i : all) {
            if (i.getId().equals("go")) {
                if (i.getPort() != 8080 || i.getSslPort() != null || !i.isEnabled() || !i.getAddress().equals("go.example")) {
                    throw new AssertionError("instance " + i);
                }
                return true;
            }
        }
        return false;
    }

    private static void until(String what, Callable<Boolean> condition) throws Exception {
        for (long end = System.currentTimeMillis() + WAIT_MS; !condition.call(); Thread.sleep(10)) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError("not in time: " + what);
            }
        }
    }
}

import java.util.Set;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;

/**
 * A member of a group and an instance of a service, by Curator; it runs until it is killed. Run as {@code
 * Roster SERVER PREFIX ID}. Whenever the group and the service have the same members, and these have
 * changed, it prints @sees and their ids.
 */
public final class Roster {
    private static final int SESSION_MS = 3_000;

    public static void main(String[] args) throws Exception {
        String prefix = args[1], id = args[2];
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], SESSION_MS, SESSION_MS, new RetryForever(50));
        client.start();
        GroupMember member = new GroupMember(client, prefix + "/group", id, new byte[0]);
        member.start();
        ServiceInstance<Void> web =
                ServiceInstance.<Void>builder().name("web").id(id).address(id + ".example").port(81).build();
        ServiceDiscovery<Void> discovery =
                ServiceDiscoveryBuilder.builder(Void.class)
                        .client(client)
                        .basePath(prefix + "/services")
                        .thisInstance(web)
                        .build();
        discovery.start();
        for (String last = ""; ; Thread.sleep(10)) {
            Set<String> instances = new TreeSet<>();
            for (ServiceInstance<Void> i : discovery.queryForInstances("web")) {
                instances.add(i.getId());
            }
            String now = String.join(",", instances);
            if (!now.equals(last) && instances.equals(new TreeSet<>(member.getCurrentMembers().keySet()))) {
                last = now;
                System.out.println("@sees " + now);
            }
        }
    }
}

package blackbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"bellwether/interop/target"

	"golang.org/x/sys/unix"
)

// namesDir is the directory in which ip stores the names of network namespaces.
const namesDir = "/run/netns"

// home is the network namespace of the process itself.
var home *os.File

// prepareHosts prepares this process's namespaces for hosts.
func prepareHosts() error {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount of a tmpfs on /run: %w", err)
	}
	if err := os.Mkdir(namesDir, 0o755); err != nil {
		return err
	}
	var err error
	if home, err = os.Open("/proc/self/ns/net"); err != nil {
		return err
	}
	return ip("", "link set lo up")
}

// ip runs lines of ip's command language in the namespace of a host; the empty name means home.
func ip(name string, lines ...string) error {
	args := []string{"-batch", "-"}
	if name != "" {
		args = append([]string{"-n", name}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip in %q: %w: %s\n%s", name, err, out, strings.Join(lines, "\n"))
	}
	return nil
}

// network is a router with a link to each of its hosts. The router has a routing table for the
// packets of each link. A blackhole route in it cuts the direction to one other host.
type network struct {
	t      testing.TB
	router string
	hosts  []*host
	cuts   map[[2]int]bool
	down   map[int]bool
	slow   map[int]bool
	// filters select the packets that the router drops, as in rules of ip.
	filters []string
}

// host is one machine of the network.
type host struct {
	index int
	name  string // the name of its namespace
	addr  string
}

// networks counts the networks, for their names.
var networks atomic.Int64

// newNetwork creates n hosts. They are removed at the end of the test.
func newNetwork(t testing.TB, n int) *network {
	t.Helper()
	if noHosts != nil {
		t.Fatalf("cannot create hosts for this test: %v", noHosts)
	}
	id := networks.Add(1)
	w := &network{t: t, router: fmt.Sprintf("n%d", id), cuts: map[[2]int]bool{}, down: map[int]bool{}, slow: map[int]bool{}}
	names := []string{w.router}
	for i := range n {
		w.hosts = append(w.hosts, &host{i, fmt.Sprintf("n%dh%d", id, i+1), hostAddr(i)})
		names = append(names, w.hosts[i].name)
	}
	for _, name := range names {
		w.must(ip("", "netns add "+name))
		t.Cleanup(func() { w.must(ip("", "netns del "+name)) })
	}
	w.must(within(w.router, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
	}))
	for _, h := range w.hosts {
		w.link(h)
	}
	return w
}

// hostAddr returns the address of a host.
func hostAddr(i int) string { return fmt.Sprintf("10.0.%d.2", i+1) }

// link connects a host with the router.
func (w *network) link(h *host) {
	i := h.index + 1
	w.must(ip(w.router,
		fmt.Sprintf("link add v%d type veth peer name eth0 netns %s", i, h.name),
		fmt.Sprintf("addr add 10.0.%d.1/24 dev v%d", i, i),
		fmt.Sprintf("link set v%d up", i),
		fmt.Sprintf("rule add iif v%d lookup %d", i, table(h.index))))
	w.must(ip(h.name,
		fmt.Sprintf("addr add %s/24 dev eth0", h.addr),
		"link set lo up",
		"link set eth0 up",
		fmt.Sprintf("route add default via 10.0.%d.1", i)))
}

// table returns the router's routing table for packets from a host.
func table(from int) int { return 100 + from }

func (w *network) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Cut drops all packets from one host to another, but not in the other direction.
func (w *network) Cut(from, to int) {
	w.t.Helper()
	if w.cuts[[2]int{from, to}] {
		return
	}
	w.must(ip(w.router, fmt.Sprintf("route add blackhole %s table %d", w.hosts[to].addr, table(from))))
	w.cuts[[2]int{from, to}] = true
}

// Part cuts both directions between the hosts of two groups.
func (w *network) Part(one, other []int) {
	w.t.Helper()
	for _, a := range one {
		for _, b := range other {
			w.Cut(a, b)
			w.Cut(b, a)
		}
	}
}

// Unplug takes a host's link down, at the router's end.
func (w *network) Unplug(i int) {
	w.t.Helper()
	w.must(ip(w.router, fmt.Sprintf("link set v%d down", i+1)))
	w.down[i] = true
}

// Slow limits a host's sending rate, in bits per second in the notation of tc.
func (w *network) Slow(i int, rate string) {
	w.t.Helper()
	out, err := exec.Command("tc", "-n", w.hosts[i].name, "qdisc", "add", "dev", "eth0", "root",
		"tbf", "rate", rate, "burst", "16kb", "latency", "200ms").CombinedOutput()
	if err != nil {
		w.t.Fatalf("tc: %v: %s", err, out)
	}
	w.slow[i] = true
}

// Filter silently drops the packets that a selector of ip rule selects.
func (w *network) Filter(packets string) {
	w.t.Helper()
	w.must(ip(w.router, "rule add pref 10 "+packets+" blackhole"))
	w.filters = append(w.filters, packets)
}

// Heal removes all cuts, filters and limits.
func (w *network) Heal() {
	w.t.Helper()
	for _, packets := range w.filters {
		w.must(ip(w.router, "rule del pref 10 "+packets+" blackhole"))
	}
	w.filters = nil
	for cut := range w.cuts {
		w.must(ip(w.router, fmt.Sprintf("route del blackhole %s table %d", w.hosts[cut[1]].addr, table(cut[0]))))
	}
	for i := range w.down {
		w.must(ip(w.router, fmt.Sprintf("link set v%d up", i+1)))
	}
	for i := range w.slow {
		if out, err := exec.Command("tc", "-n", w.hosts[i].name, "qdisc", "del", "dev", "eth0", "root").CombinedOutput(); err != nil {
			w.t.Fatalf("tc: %v: %s", err, out)
		}
	}
	clear(w.cuts)
	clear(w.down)
	clear(w.slow)
}

// within calls the function do with the goroutine's thread in a namespace. Sockets that do
// creates stay in that namespace.
func within(name string, do func() error) error {
	space, err := os.Open(filepath.Join(namesDir, name))
	if err != nil {
		return err
	}
	defer space.Close()
	runtime.LockOSThread() // the thread stays locked if the return to its namespace fails, so that it ends with its goroutine
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("setns: %w", err)
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return fmt.Errorf("setns: %w", back)
	}
	runtime.UnlockOSThread()
	return err
}

// dial connects from the host to a literal address.
func (h *host) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = within(h.name, func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// listen listens on the host.
func (h *host) listen(port string) (l net.Listener, err error) {
	err = within(h.name, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(h.addr, port))
		return err
	})
	return l, err
}

// place returns the host as a place for a server.
func (h *host) place() target.Place {
	return target.Place{Host: h.addr, Enter: []string{"nsenter", "--net=" + filepath.Join(namesDir, h.name)}, Dial: h.dial}
}

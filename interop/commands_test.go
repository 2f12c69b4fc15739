package interop

import (
	"bufio"
	"bytes"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestCommandsForShells shows that the recipe commands do the same on both servers and end
// with the same statuses. Elections have their own test.
func TestCommandsForShells(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		prefix := fresh("commands")
		bellwether(t, "create", "--server", s.Addr, prefix)
		c := commands{t, s.Addr + prefix}

		// The later holder's token is larger.
		first := c.gives(0, "", "lock", "/lock", "--", "sh", "-c", "echo $BELLWETHER_TOKEN")
		second := c.gives(0, "", "lock", "/lock", "--", "sh", "-c", "echo $BELLWETHER_TOKEN")
		if number(t, second) <= number(t, first) {
			t.Errorf("token %s after %s", second, first)
		}
		c.gives(7, "", "lock", "/lock", "--", "sh", "-c", "exit 7")
		// While the command of one client holds the lock, another client cannot obtain it.
		self := strings.Join([]string{binaryOf(t), "lock", "--server", c.servers, "--try /lock -- true"}, " ")
		c.gives(121, "", "lock", "/lock", "--", "sh", "-c", self)

		lease := []string{"semaphore", "-n", "1", "/semaphore", "--"}
		if got := c.gives(0, "", append(lease, "sh", "-c", "echo $BELLWETHER_BID")...); !strings.HasPrefix(got, "/semaphore/leases/") {
			t.Errorf("the bid for a lease is %q, want one below /semaphore/leases", got)
		}
		self = strings.Join([]string{binaryOf(t), "semaphore", "--server", c.servers, "-n 1 --wait 100ms /semaphore -- true"}, " ")
		c.gives(121, "", append(lease, "sh", "-c", self)...)

		c.gives(0, "", "barrier", "close", "/gate")
		c.gives(121, "", "barrier", "wait", "--wait", "100ms", "/gate")
		c.gives(0, "", "barrier", "open", "/gate")
		c.gives(0, "", "barrier", "wait", "/gate")
		c.gives(3, "", "barrier", "enter", "-n", "1", "/step", "--", "sh", "-c", "exit 3")

		c.gives(0, "one\ntwo\n", "queue", "push", "/queue")
		for _, want := range []string{"one\n", "two\n"} {
			if got := c.gives(0, "", "queue", "pop", "/queue"); got != want {
				t.Errorf("popped %q, want %q", got, want)
			}
		}
		c.gives(121, "", "queue", "pop", "--wait", "100ms", "/queue")
		c.gives(0, "", "queue", "push", "--ack", "/work", "task")
		c.gives(5, "", "queue", "pop", "--ack", "/work", "--", "sh", "-c", "exit 5")
		if got := c.gives(0, "", "queue", "pop", "--ack", "/work", "--", "cat"); got != "task" {
			t.Errorf("the command got the item %q, want task", got)
		}

		watch := c.command("watch", "--count", "1", "--timeout", "30s", "/watched")
		out, err := watch.StdoutPipe()
		if err == nil {
			err = watch.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var seen string
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if seen += lines.Text() + "\n"; strings.Contains(lines.Text(), `"watch":"begun"`) {
				c.gives(0, "", "create", "/watched")
			}
		}
		if err := watch.Wait(); err != nil || !strings.Contains(seen, `"event":"NodeCreated","path":"/watched"`) {
			t.Errorf("%v\n%s", err, seen)
		}
	})
}

// commands runs the program against one server.
type commands struct {
	t       *testing.T
	servers string
}

// command returns a command of the program with these arguments; --server follows the
// command's name.
func (c commands) command(args ...string) *exec.Cmd {
	name := 1
	if args[0] == "queue" || args[0] == "barrier" {
		name = 2
	}
	all := append(append(append([]string{}, args[:name]...), "--server", c.servers), args[name:]...)
	cmd := exec.Command(binaryOf(c.t), all...)
	return cmd
}

// gives runs a command to its end, requires this status, and returns the output.
func (c commands) gives(status int, stdin string, args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		c.t.Errorf("%q: status %d, want %d: %s", args, got, status, &complaint)
	}
	return out.String()
}

func binaryOf(t *testing.T) string {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

package target

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestReport shows that a report names the processes that ended by themselves, in order and
// with their statuses, but not those that the test has ended.
func TestReport(t *testing.T) {
	var servers []*Server
	for range 3 {
		servers = append(servers, &Server{Kind: Apache, dir: t.TempDir()})
	}
	run := func(s *Server, script string) {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.follow(cmd)
	}
	run(servers[1], "exit 14")
	<-servers[1].process.done
	run(servers[1], "sleep 60")
	run(servers[0], "kill -9 $$")
	<-servers[0].process.done
	run(servers[2], "sleep 60")
	if err := servers[2].Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-servers[2].process.done
	got := Report(servers...)
	servers[1].Kill()
	first, rest, _ := strings.Cut(got, "\n")
	second, rest, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(first, "server 2 ") || !strings.HasSuffix(first, "exit status 14") ||
		!strings.HasPrefix(second, "server 1 ") || !strings.HasSuffix(second, "signal: killed") ||
		strings.Contains(rest, "by itself") || !strings.Contains(rest, "end of the log of server 3") {
		t.Errorf("the report is\n%s", got)
	}
}

package bench

import (
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// TestListeners shows that the process that listens at a loopback address is found, and no
// process for addresses of other machines.
func TestListeners(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	if pids := Listeners([]string{ln.Addr().String()}); !slices.Equal(pids, []int{os.Getpid()}) {
		t.Errorf("%v listen, this is %d", pids, os.Getpid())
	}
	if pids := Listeners([]string{"192.0.2.1:" + port, "nonsense", ""}); pids != nil {
		t.Errorf("%v listen at other addresses", pids)
	}
	if _, known := processorOf([]int{os.Getpid()}); !known {
		t.Error("the processor time of this process is not known")
	}
}

// TestEachServer shows that a report has the processor time of each server, their sum, and their memory.
func TestEachServer(t *testing.T) {
	m := Setting{Servers: []int{os.Getpid(), os.Getppid()}}.begin()
	for m.servers[0] == mustProcessor(t)[0] { // until this process has used some
	}
	var r Report
	m.charge(&r)
	if len(r.EachCPU) != 2 || r.EachCPU[0] <= 0 || r.ServerCPU != r.EachCPU[0]+r.EachCPU[1] {
		t.Errorf("%v, sum %v", r.EachCPU, r.ServerCPU)
	}
	own, err := Resident(os.Getpid())
	if err != nil || own <= 0 || r.ServerMemory <= own/2 {
		t.Errorf("%d of them %d, %v", r.ServerMemory, own, err)
	}
	if _, err := Resident(os.Getpid(), 1<<30); err == nil {
		t.Error("memory of a process that does not exist")
	}
}

func mustProcessor(t *testing.T) []time.Duration {
	t.Helper()
	each, known := processorOf([]int{os.Getpid()})
	if !known {
		t.Fatal("the processor time is not known")
	}
	return each
}

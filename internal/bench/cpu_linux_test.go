package bench

import (
	"net"
	"os"
	"slices"
	"testing"
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

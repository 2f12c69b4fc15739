package blackbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"bellwether/interop/target"
)

// insideEnv is set for the process inside the namespaces. Its value is the path of the server's
// binary, which is built outside, where there is a network.
const insideEnv = "BLACKBOX_BINARY"

// noHosts is the reason why hosts cannot be created; every test fails with it.
var noHosts error

// atOnce limits how many scenes run at the same time: each holds a place in it, or all of them.
var atOnce = make(chan struct{}, 2)

// takingAll lets one scene at a time take all places.
var takingAll sync.Mutex

// enter waits for a place, or for all of them. The test gives back what it has taken.
func enter(t *testing.T, alone bool) {
	places := 1
	if alone {
		takingAll.Lock()
		defer takingAll.Unlock()
		places = cap(atOnce)
	}
	for range places {
		atOnce <- struct{}{}
		t.Cleanup(func() { <-atOnce })
	}
}

func TestMain(m *testing.M) {
	if binary := os.Getenv(insideEnv); binary != "" {
		// The script ends when its pipe is closed everywhere. A server whose disk hangs cannot even
		// be killed, so it must not inherit the pipe.
		syscall.CloseOnExec(askFD)
		syscall.CloseOnExec(answerFD)
		target.UseBinary(binary)
		noHosts = prepareHosts()
		os.Exit(m.Run())
	}
	os.Exit(outside(m))
}

// outside runs this program again inside namespaces. If that is not possible, the tests run here
// and fail. The disks that hang on demand are mounted first.
func outside(m *testing.M) int {
	binary, err := target.Binary()
	defer target.RemoveBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("unshare", "-Urnm", "true").CombinedOutput(); err != nil {
		noHosts = fmt.Errorf("no user, network and mount namespaces here (unshare -Urnm): %w: %s", err, out)
		return m.Run()
	}
	files, where, endDisks := startDisks()
	defer endDisks()
	runtime.LockOSThread() // the other process is killed when this thread ends
	cmd := exec.Command("unshare", append([]string{"-Urnm", os.Args[0]}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideEnv+"="+binary, disksEnv+"="+where)
	cmd.ExtraFiles = files
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

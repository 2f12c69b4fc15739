package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBareSystem shows that the program needs nothing from the system. It runs in a root directory that contains
// only the program and a directory for the data. It may not write anywhere else, and there is no home, /etc,
// /proc, /tmp or time zone file. The time zone in the environment does not exist.
func TestBareSystem(t *testing.T) {
	root := t.TempDir()
	program := filepath.Join(root, "bellwether")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Mkdir(filepath.Join(root, "data"), 0o777))
	must(t, os.Chmod(filepath.Join(root, "data"), 0o777))
	must(t, os.Chmod(root, 0o555))
	t.Cleanup(func() { os.Chmod(root, 0o755) })

	serve := bare(root, "serve", "--listen", "127.0.0.1:0", "--data", "/data")
	log, err := serve.StderrPipe()
	must(t, err)
	must(t, serve.Start())
	defer serve.Process.Kill()
	address, _ := awaitServing(t, log)

	for _, c := range []struct{ args, want string }{
		{"create /a b", "Created /a\n"},
		{"get /a", "b\n"},
		{"data check /data", "/data/version-2/"},
		{"version", "bellwether "},
	} {
		args := strings.Fields(c.args)
		if args[0] != "data" && args[0] != "version" {
			args = append(args, "--server", address)
		}
		out, err := bare(root, args...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), c.want) {
			t.Errorf("%s: %v, %q", c.args, err, out)
		}
	}
	// The server wrote only its data, because it cannot write anywhere else.
	if out, err := bare(root, "serve", "--listen", "127.0.0.1:0", "--data", "/elsewhere").CombinedOutput(); err == nil {
		t.Errorf("the root can be written: %s", out)
	}
	must(t, serve.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(log)
	must(t, err)
	if err := serve.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
}

// nobody is the id of a user and a group that own no file.
const nobody = 65534

// bare returns a command that runs the program in the root directory root as a user who owns nothing. If the
// test itself may not change the root directory, the command runs in a user namespace, where it may.
func bare(root string, args ...string) *exec.Cmd {
	cmd := exec.Command("/bellwether", args...)
	cmd.Dir = "/"
	cmd.Env = []string{"TZ=Nowhere/Nothing"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getegid(), Size: 1}}
	return cmd
}

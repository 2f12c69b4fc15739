package target

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Class paths of Debian's packages. The manifest of zookeeper.jar lists what it needs,
// except for a logger, the libraries of its AdminServer, and those of netty, which TLS needs.
const (
	jarDir     = "/usr/share/java/"
	apacheMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
)

// zooKeeperEnv is the environment variable with the class path of the ZooKeeper whose servers the tests
// start. It must contain everything that these need. Without it, they start Debian's ZooKeeper.
const zooKeeperEnv = "INTEROP_ZOOKEEPER"

// OtherZooKeeper reports whether the tests start another ZooKeeper than Debian's 3.8.0. It need not have the
// differences from Bellwether that are listed for 3.8.0.
func OtherZooKeeper() bool { return os.Getenv(zooKeeperEnv) != "" }

// ClassPath returns the class path of a Java program of ZooKeeper, with the named logger of
// slf4j and the libraries of netty.
func ClassPath(logger string) string {
	jars := []string{jarDir + "zookeeper.jar", jarDir + logger, jarDir + "servlet-api.jar"}
	for _, part := range []string{"buffer", "codec", "common", "handler", "resolver", "transport", "transport-native-epoll", "transport-native-unix-common"} {
		jars = append(jars, jarDir+"netty-"+part+".jar")
	}
	return strings.Join(jars, ":")
}

// JVM are the options of every Java process of the tests: a quick start, little memory, and
// the same times and texts everywhere. Without file.encoding, Java 17 and earlier decode
// credentials in the encoding of the locale.
var JVM = []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"}

// writeConfig writes the zoo.cfg that both kinds of server read.
func (s *Server) writeConfig(extra map[string]string) error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	keys := map[string]string{
		"tickTime":               "500",
		"dataDir":                s.Data,
		"clientPort":             port,
		"clientPortAddress":      host,
		"maxClientCnxns":         "0",
		"maxSessionTimeout":      "60000",
		"admin.enableServer":     "false",
		"4lw.commands.whitelist": "*",
		"extendedTypesEnabled":   "true",
		"preAllocSize":           "1024",
		"DigestAuthenticationProvider.superDigest": superDigest(),
	}
	maps.Copy(keys, extra)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&text, "%s=%s\n", key, keys[key])
	}
	for _, line := range s.lines {
		text.WriteString(line + "\n")
	}
	if err := os.MkdirAll(s.Data, 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.ConfigPath(), []byte(text.String()), 0o644)
}

// superDigest returns the setting that gives the user "super" its password.
func superDigest() string {
	sum := sha1.Sum([]byte("super:" + Password))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// command returns the command that runs the server at its place.
func (s *Server) command() (*exec.Cmd, error) {
	cmd, err := s.program()
	if err != nil || len(s.place.Enter) == 0 {
		return cmd, err
	}
	args := append(slices.Clone(s.place.Enter), cmd.Path)
	entering := exec.Command(args[0], append(args[1:], cmd.Args[1:]...)...)
	entering.Env = cmd.Env
	return entering, nil
}

// program returns the server's own command.
func (s *Server) program() (*exec.Cmd, error) {
	switch s.Kind {
	case Apache:
		java, err := exec.LookPath("java")
		if err != nil {
			return nil, errors.New("java is missing: make test installs default-jdk-headless")
		}
		classPath := os.Getenv(zooKeeperEnv)
		if classPath == "" {
			classPath = ClassPath("slf4j-simple.jar")
			if _, err := os.Stat(jarDir + "zookeeper.jar"); err != nil {
				return nil, errors.New(jarDir + "zookeeper.jar is missing: make test installs libzookeeper-java")
			}
		}
		args := append(append(slices.Clone(s.jvm), s.javaProperties()...),
			"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error", "-cp", classPath, apacheMain, s.ConfigPath())
		return exec.Command(java, args...), nil
	case Bellwether:
		binary, err := Binary()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(binary, "serve", "--config", s.ConfigPath())
		cmd.Env = append(os.Environ(), "JVMFLAGS="+strings.Join(s.javaProperties(), " "))
		return cmd, nil
	}
	return nil, fmt.Errorf("INTEROP_TARGETS: %q is not a kind of server: want apache or bellwether", s.Kind)
}

// javaProperties returns the settings that are not possible in zoo.cfg: the interval of the
// container check, and those of the test. Bellwether reads them from JVMFLAGS.
func (s *Server) javaProperties() []string {
	flags := []string{"-Dznode.container.checkIntervalMs=" + strconv.Itoa(s.reapMS)}
	for _, p := range s.properties {
		flags = append(flags, "-D"+p)
	}
	return flags
}

// childAttr makes the system kill a process when the test process ends for any reason.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// built is the binary that this test process has built, at most once.
var built struct {
	once    sync.Once
	dir     string
	err     error
	foreign bool // another process has built it and deletes it
}

// binaryEnv is the environment variable that names a Bellwether binary to test instead of
// building one, so that one test can measure two versions.
const binaryEnv = "INTEROP_BINARY"

// Binary builds cmd/bellwether, once per test process, and returns its path. RemoveBinary
// deletes it.
func Binary() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	built.once.Do(func() { built.dir, built.err = build() })
	return filepath.Join(built.dir, "bellwether"), built.err
}

// UseBinary makes Binary return this path, which the parent process has built.
func UseBinary(path string) {
	built.once.Do(func() { built.dir, built.foreign = filepath.Dir(path), true })
}

// RemoveBinary deletes the binary that Binary built. TestMain must call it last.
func RemoveBinary() error {
	if built.dir == "" || built.foreign {
		return nil
	}
	return os.RemoveAll(built.dir)
}

func build() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "bellwether-interop-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "bellwether"), "./cmd/bellwether")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build of cmd/bellwether: %w\n%s", err, out)
	}
	return dir, nil
}

// Root returns the root of the repository: the folder above the interop module.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) != "interop" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Dir(dir), nil
		}
	}
	return "", errors.New("not inside the interop module")
}

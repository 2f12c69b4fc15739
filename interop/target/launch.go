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

// Class paths of Debian's packages. The manifest of zookeeper.jar names what it
// needs, except for a logger, and for what its AdminServer needs.
const (
	jarDir     = "/usr/share/java/"
	apachePath = jarDir + "zookeeper.jar:" + jarDir + "slf4j-simple.jar:" + jarDir + "servlet-api.jar"
	apacheMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
)

// JVM are the options every Java process of the tests gets: quick to start,
// small, and the same times and texts everywhere. Java 17 and earlier decode
// credentials by the locale where file.encoding is not given.
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
	return os.WriteFile(s.configPath(), []byte(text.String()), 0o644)
}

// superDigest is the form in which a server is told the password of "super".
func superDigest() string {
	sum := sha1.Sum([]byte("super:" + Password))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// command returns the process to run, not yet started.
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

// program is the server's own command line.
func (s *Server) program() (*exec.Cmd, error) {
	switch s.Kind {
	case Apache:
		java, err := exec.LookPath("java")
		if err != nil {
			return nil, errors.New("java is missing: make test installs default-jdk-headless")
		}
		if _, err := os.Stat(jarDir + "zookeeper.jar"); err != nil {
			return nil, errors.New(jarDir + "zookeeper.jar is missing: make test installs libzookeeper-java")
		}
		args := append(append(slices.Clone(s.jvm), s.javaProperties()...),
			"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error", "-cp", apachePath, apacheMain, s.configPath())
		return exec.Command(java, args...), nil
	case Bellwether:
		binary, err := Binary()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(binary, "serve", "--config", s.configPath())
		cmd.Env = append(os.Environ(), "JVMFLAGS="+strings.Join(s.javaProperties(), " "))
		return cmd, nil
	}
	return nil, fmt.Errorf("no server of kind %q: INTEROP_TARGETS takes apache, bellwether", s.Kind)
}

// javaProperties are what zoo.cfg cannot set: the reaper's interval, and what
// the test adds. Bellwether takes them from where ZooKeeper's scripts do.
func (s *Server) javaProperties() []string {
	flags := []string{"-Dznode.container.checkIntervalMs=" + strconv.Itoa(s.reapMS)}
	for _, p := range s.properties {
		flags = append(flags, "-D"+p)
	}
	return flags
}

// childAttr lets a process die with the tests, however they end.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// built is the one build of the binary that a test process makes.
var built struct {
	once    sync.Once
	dir     string
	err     error
	foreign bool // it is not this process's to delete
}

// binaryEnv names a build of cmd/bellwether to be tested in place of this
// tree's, so that two versions can be measured by one test.
const binaryEnv = "INTEROP_BINARY"

// Binary builds cmd/bellwether, once for each test process, and returns its
// path. RemoveBinary deletes it.
func Binary() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	built.once.Do(func() { built.dir, built.err = build() })
	return filepath.Join(built.dir, "bellwether"), built.err
}

// UseBinary makes Binary return this path, of a build by the process that
// started this one.
func UseBinary(path string) {
	built.once.Do(func() { built.dir, built.foreign = filepath.Dir(path), true })
}

// RemoveBinary deletes what Binary built; a TestMain calls it last.
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

// Root returns the top of the repository: the folder above the interop module.
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

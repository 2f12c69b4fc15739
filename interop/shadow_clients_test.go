package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/shadow/relay"
	"bellwether/interop/target"
)

// TestShadowOfOtherClients runs the scripts of kazoo, the programs of Curator and zkCli through shadow, except for those that expect
// a new server that is standalone.
func TestShadowOfOtherClients(t *testing.T) {
	t.Parallel()
	classes := t.TempDir()
	sources := glob(t, "java/*.java")
	target.Script{Args: append([]string{"javac", "-proc:none", "-cp", curatorPath, "-d", classes}, sources...)}.Pass(t)
	s := shadowEnsemble(t)
	run := s.runWith(t, relay.Options{Observer: s.observer, Super: shadowSuper}, s.e.Servers[0])
	way := target.NewProxy(t, run.addr)
	for _, script := range glob(t, "python/*.py") {
		if name := filepath.Base(script); name != "common.py" && name != "operations.py" {
			t.Run(name, func(t *testing.T) {
				target.Script{Args: []string{debianPython, "-B", script, run.addr, way.Addr, fresh("shadow-" + name)}, Commands: proxyCommands(way)}.Pass(t)
			})
		}
	}
	for _, source := range sources {
		if name := strings.TrimSuffix(filepath.Base(source), ".java"); name != "Check" && name != "Operations" {
			t.Run(name, func(t *testing.T) {
				commands := proxyCommands(way)
				commands["@restart"] = s.e.Servers[0].Restart
				args := append([]string{"java"}, target.JVM...)
				target.Script{Args: append(args, "-cp", classes+":"+curatorPath, name, run.addr, way.Addr), Commands: commands}.Pass(t)
			})
		}
	}
	t.Run("zkCli", func(t *testing.T) {
		cli := target.Script{Args: []string{"java", "-cp", zkCLIPath, zkCLI, "-server", run.addr, "ls", "-R", "/zookeeper"}}
		if out := cli.Pass(t).Output(); !strings.Contains(out, "/zookeeper/quota") {
			t.Error(out)
		}
	})
	t.Run("setquota of zkCli", func(t *testing.T) {
		for _, command := range []string{"create /q 1", "setquota -n 3 /q", "create /q/a 1", "setquota -b 100 /q"} {
			args := append([]string{"java", "-cp", zkCLIPath, zkCLI, "-server", run.addr}, strings.Fields(command)...)
			target.Script{Args: args}.Pass(t)
		}
	})
	noDifference(t, run.end(), "addWatch create create2 createContainer delete exists getACL getChildren getChildren2 getData multi notification setACL setData setWatches")
	s.awaitSessions(t)
}

package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// curatorPath is the class path of Debian's Curator; its manifests list what it needs.
const curatorPath = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"

// TestCurator runs the programs of java/ with Apache's Java client and Curator's recipes,
// each against its own server.
func TestCurator(t *testing.T) {
	t.Parallel()
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	classes := t.TempDir()
	sources := glob(t, "java/*.java")
	target.Script{
		Args: append([]string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", curatorPath, "-d", classes}, sources...),
	}.Pass(t)
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".java")
		if name == "Check" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			eachTarget(t, func(t *testing.T, kind target.Kind) {
				s := target.StartFor(t, kind, target.Options{})
				way := target.NewProxy(t, s.Addr)
				commands := proxyCommands(way)
				commands["@restart"] = s.Restart
				args := append([]string{java}, target.JVM...)
				target.Script{
					Args:     append(args, "-cp", classes+":"+curatorPath, name, s.Addr, way.Addr),
					Commands: commands,
				}.Pass(t)
			})
		})
	}
}

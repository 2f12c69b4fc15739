package interop

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestShellAnswersAsZkCLI executes the transcripts of Apache's command line, which TestZkCLI
// compares with the real one, in Bellwether's shell, against both servers. The output must be
// the same but for the commands of shellDiffers.
func TestShellAnswersAsZkCLI(t *testing.T) {
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		for _, file := range glob(t, "testdata/zkcli/*.txt") {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				s := target.StartFor(t, kind, target.Options{})
				compareShell(t, s, []string{binary, "shell", "-server", s.Addr}, file)
			})
		}
	})
}

// shellDiffers has the commands of the transcripts for which the shell prints something else, with what it prints.
// The messages about wrong commands say what is wrong, where zkCli prints the usage of one or of all commands.
var shellDiffers = map[string]string{
	"> addWatch -m BOGUS /deep": "-m \"BOGUS\": want PERSISTENT or PERSISTENT_RECURSIVE\n",
	"> bogus":                   "Command not found: bogus; help lists the commands\n",
	"$ bogus":                   "exit 127\nCommand not found: bogus; help lists the commands\n",
	"$ create":                  "exit 2\nno arguments, want create PATH [DATA [ACL]] [flags]; see help create\n",
	"> create noslash x":        "Path must start with / character: noslash\n",
	"> create /cli/ x":          "Path must not end with / character: /cli/\n",
	"> create -t -5 /cli/t2 x":  "--ttl -5: want milliseconds above 0\n",
	"> delete /zookeeper":       "Arguments are not valid : /zookeeper (/ and /zookeeper cannot be changed or deleted)\n",
	"> delete /":                "Arguments are not valid : / (/ and /zookeeper cannot be changed or deleted)\n",
	"> create /cli/bad x bogus": "ACL entry \"bogus\": want scheme:id:perms, as in world:anyone:cdrwa\n",
	// The shell names the operation and the path instead of KeeperErrorCode.
	"> reconfig -add server.2=127.0.0.1:2888:3888;2181": "reconfig /zookeeper/config: reconfiguration is disabled\n",
	"> reconfig -remove 1":                              "reconfig /zookeeper/config: reconfiguration is disabled\n",
}

// shellTwice matches what zkCli prints in addition about a refused ACL.
var shellTwice = regexp.MustCompile(`(?m)^KeeperErrorCode = InvalidACL.*\n`)

// shellAccepts matches the command of a transcript that only the shell accepts: it sets several limits at once.
var shellAccepts = regexp.MustCompile(`(?m)^> setquota -n 3 -b 4 /quota\n.*\n`)

// shellTime matches a time of a stat, which the shell prints in RFC 3339, and shellBuild its
// version.
var (
	shellTime  = regexp.MustCompile(`(?m)^(ctime|mtime) = \d{4}-.*Z$`)
	shellBuild = regexp.MustCompile(`(?m)^bellwether \d.*$`)
	shellName  = regexp.MustCompile(`(?m)^bellwether: `)
	shellZxid  = regexp.MustCompile(`(?m)^(WatchedEvent .*) zxid: \d+$`)
)

// compareShell executes a transcript in the shell and compares it.
func compareShell(t *testing.T, s *target.Server, program []string, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = shellTwice.ReplaceAll(shellAccepts.ReplaceAll(text, nil), nil)
	got := replay(t, s, program, string(text))
	got = shellTime.ReplaceAllString(got, "$1 = TIME")
	got = shellBuild.ReplaceAllString(got, "ZooKeeper CLI version: BUILD")
	got = shellName.ReplaceAllString(got, "")
	got = shellZxid.ReplaceAllString(got, "$1")
	text = bytes.ReplaceAll(text, []byte("Connecting to SERVER\n"), nil)
	text = regexp.MustCompile(`(?m)^(ctime|mtime) = .* 1970$`).ReplaceAll(text, []byte("$1 = TIME"))
	gots, wants := answers(normalise(got, s)), answers(string(text))
	if len(gots) != len(wants) {
		t.Fatalf("%d answers, want %d:\n%s", len(gots), len(wants), got)
	}
	for i, want := range wants {
		command, answer, _ := strings.Cut(want, "\n")
		if ours, ok := shellDiffers[command]; ok && ours == answer {
			t.Errorf("%s: the shell and zkCli print the same: remove the command from shellDiffers", command)
		} else if ours, ok := shellDiffers[command]; ok {
			want = command + "\n" + ours
		}
		if gots[i] != want {
			t.Errorf("%s\n--- got\n%s--- want\n%s", command, gots[i], want)
		}
	}
}

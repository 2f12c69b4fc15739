package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestOfficialImage shows the files of the official image without any variable,
// byte by byte, and what each variable changes.
func TestOfficialImage(t *testing.T) {
	got := OfficialImage(nil)
	golden(t, "testdata/official.cfg", got.Config)
	if got.File != "/conf/zoo.cfg" || got.DataDir != "/data" || got.MyID != "1\n" || got.JVMFlags != "" {
		t.Errorf("%+v", got)
	}
	got = OfficialImage(map[string]string{
		"ZOO_CONF_DIR": "/c", "ZOO_DATA_DIR": "/d", "ZOO_DATA_LOG_DIR": "/l", "ZOO_TICK_TIME": "1", "ZOO_INIT_LIMIT": "2", "ZOO_SYNC_LIMIT": "3",
		"ZOO_AUTOPURGE_PURGEINTERVAL": "4", "ZOO_AUTOPURGE_SNAPRETAINCOUNT": "5", "ZOO_MAX_CLIENT_CNXNS": "6", "ZOO_STANDALONE_ENABLED": "false",
		"ZOO_ADMINSERVER_ENABLED": "false", "ZOO_SERVERS": "server.1=a:2888:3888;2181  server.2=b:2888:3888;2181", "ZOO_MY_ID": "2",
		"ZOO_4LW_COMMANDS_WHITELIST": "srvr, mntr", "ZOO_CFG_EXTRA": "metricsProvider.httpPort=7000 snapCount=9", "JVMFLAGS": "-Xmx1g", "SERVER_JVMFLAGS": "-Da=b",
	})
	golden(t, "testdata/official-all.cfg", got.Config)
	if got.File != "/c/zoo.cfg" || got.MyID != "2\n" || got.JVMFlags != "-Da=b -Xmx1g" {
		t.Errorf("%+v", got)
	}
}

// golden compares text with a file; -update writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// TestOfficialImageLoads shows that what the image makes starts a server alone
// on port 2181.
func TestOfficialImageLoads(t *testing.T) {
	image := OfficialImage(map[string]string{"ZOO_DATA_DIR": "DIR/data", "ZOO_DATA_LOG_DIR": "DIR/log"})
	c := load(t, image.JVMFlags, image.Config, "data/myid", image.MyID)
	if !c.Standalone() || c.Client.String() != "0.0.0.0:2181" || c.DataLogDir == c.DataDir {
		t.Errorf("%+v", c)
	}
}

// TestBitnamiImage shows the files of the Bitnami image.
func TestBitnamiImage(t *testing.T) {
	got, err := BitnamiImage(nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/bitnami.cfg", got.Config)
	if got.JVMFlags != "-Dzookeeper.electionPortBindRetry=0 -Dzookeeper.fips-mode=true" || got.MyID != "1\n" {
		t.Errorf("%+v", got)
	}
	got, err = BitnamiImage(map[string]string{
		"ZOO_PORT_NUMBER": "2182", "ZOO_SERVER_ID": "3", "ZOO_TICK_TIME": "1000", "ZOO_DATA_LOG_DIR": "/l", "ZOO_RECONFIG_ENABLED": "yes",
		"ZOO_SERVERS":             "a:2888:3888,b:2888:3888:observer::7;c:2888:3888 [::1]:2888:3888 [::2]:2888:3888::9",
		"ZOO_ENABLE_ADMIN_SERVER": "true", "ZOO_ENABLE_PROMETHEUS_METRICS": "1", "ZOO_FIPS_MODE": "no", "ZOO_PEER_TYPE": "observer",
		"ZOO_CFG_snapshot_trust_empty": "true", "ZOO_CFG_a": `b\c`, "ZOO_SNAPCOUNT_FILE": "/secret/count",
	}, func(path string) ([]byte, error) {
		if path != "/secret/count" {
			t.Errorf("reads %s", path)
		}
		return []byte("77\n"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/bitnami-all.cfg", got.Config)
	if got.MyID != "3\n" || !strings.HasSuffix(got.JVMFlags, "fips-mode=false") {
		t.Errorf("%+v", got)
	}
}

// TestBitnamiGuardsStop shows that a switch of the image that asks for
// authentication or TLS ends in an error that names the key, not in an open server.
func TestBitnamiGuardsStop(t *testing.T) {
	for variable, key := range map[string]string{
		"ZOO_ENABLE_AUTH": "authProvider.1", "ZOO_ENABLE_QUORUM_AUTH": "quorum.auth.enableSasl",
		"ZOO_TLS_CLIENT_ENABLE": "secureClientPort=3181", "ZOO_TLS_QUORUM_ENABLE": "sslQuorum=true",
	} {
		image, err := BitnamiImage(map[string]string{variable: "yes", "ZOO_TLS_CLIENT_KEYSTORE_FILE": "/none"}, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		if got := refuse(t, image.JVMFlags, image.Config); !strings.Contains(got, key) || !strings.Contains(got, "is not supported by this version") {
			t.Errorf("%s: got %s", variable, got)
		}
	}
	broken := errors.New("no such secret")
	_, err := BitnamiImage(map[string]string{"ZOO_SERVER_USERS_FILE": "/x"}, func(string) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "ZOO_SERVER_USERS_FILE") {
		t.Errorf("unreadable file: %v", err)
	}
}

// TestJVMFlags shows how the flags come together from the environment and the
// file java.env.
func TestJVMFlags(t *testing.T) {
	cases := []struct {
		name, file string
		env        map[string]string
		want       string
	}{
		{"nothing", "", nil, ""},
		{"environment", "", map[string]string{"JVMFLAGS": "-Db=1", "SERVER_JVMFLAGS": "-Da=1"}, "-Da=1 -Db=1"},
		{"autocreate", "", map[string]string{"ZOO_DATADIR_AUTOCREATE_DISABLE": "1"}, "-Dzookeeper.datadir.autocreate=false"},
		{"file", "# comment\nexport JVMFLAGS=\"-Dx=1 $JVMFLAGS\"\n", map[string]string{"JVMFLAGS": "-Dy=2"}, "-Dx=1 -Dy=2"},
		{"quotes", `A='$x y' B="${A}z"` + "\nJVMFLAGS=\"$A\"-'b'\\ c$\\$ # comment", nil, "$x y-b c$$"},
		{"braces", "A=1\nJVMFLAGS=${A}2${A ${9}$A3$", nil, "12${A"},
		{"continued", "JVMFLAGS=\"-Da=1 \\\n-Db=2\"", nil, "-Da=1 -Db=2"},
		{"other lines", "if [ x = y ]; then\n  9A=1\n  JVMFLAGS=-Da=1; echo\nfi\n", nil, "-Da=1"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			var files []string
			if x.file != "" {
				files = []string{"java.env", x.file}
			}
			got, err := JVMFlags(write(t, "", files...), x.env)
			if err != nil || got != x.want {
				t.Errorf("got %q, %v; want %q", got, err, x.want)
			}
		})
	}
	if _, err := JVMFlags(write(t, "", "java.env/x", ""), nil); err == nil || !strings.Contains(err.Error(), "environment file") {
		t.Errorf("java.env is a directory: %v", err)
	}
}

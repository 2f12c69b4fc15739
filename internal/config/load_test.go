package config

import (
	"crypto"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/ensemble"
)

// write creates a new directory with a zoo.cfg of this text and with the other files. It
// replaces DIR in the texts by that directory.
func write(t *testing.T, text string, files ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	for i := -2; i+1 < len(files); i += 2 {
		name, content := "zoo.cfg", text
		if i >= 0 {
			name, content = files[i], files[i+1]
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(content, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "zoo.cfg")
}

// load loads a configuration and fails the test if it is refused.
func load(t *testing.T, flags, text string, files ...string) *Config {
	t.Helper()
	path := write(t, text, files...)
	c, err := Load(path, strings.ReplaceAll(flags, "DIR", filepath.Dir(path)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refuse loads a configuration that must be refused. It returns the text of the error
// without the directory.
func refuse(t *testing.T, flags, text string, files ...string) string {
	t.Helper()
	path := write(t, text, files...)
	c, err := Load(path, strings.ReplaceAll(flags, "DIR", filepath.Dir(path)))
	if err == nil {
		t.Fatalf("%q is accepted: %+v", text, c)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(path), "DIR")
}

func texts(ns []Notice) string {
	var all []string
	for _, n := range ns {
		n.File = filepath.Base(n.File)
		all = append(all, n.String())
	}
	return strings.Join(all, "\n")
}

const sample = `# a sample
tickTime=2000
initLimit=10
syncLimit=5
dataDir=/nonexistent/zookeeper
clientPort=2181
`

// TestSample shows the settings of an ordinary file, defaults included.
func TestSample(t *testing.T) {
	c := load(t, "", sample)
	want := defaults()
	want.File = c.File
	want.DataDir, want.DataLogDir = "/nonexistent/zookeeper", "/nonexistent/zookeeper"
	want.Client = ensemble.HostPort{Host: "0.0.0.0", Port: 2181}
	want.TickTime, want.MinSessionTimeout, want.MaxSessionTimeout = 2*time.Second, 4*time.Second, 40*time.Second
	want.Ensemble.InitLimit, want.Ensemble.SyncLimit = 10, 5
	want.Warnings = c.Warnings
	equal(t, c, want)
	if len(c.Notices) != 0 || !strings.Contains(texts(c.Warnings), "autopurge.purgeInterval is 0") || len(c.Warnings) != 1 {
		t.Errorf("notices %v, warnings %v", c.Notices, c.Warnings)
	}
	if !c.Standalone() {
		t.Error("Standalone() is false, want true")
	}
}

// TestDefaults pins ZooKeeper's defaults.
func TestDefaults(t *testing.T) {
	c := load(t, "", "dataDir=/nonexistent")
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"tickTime", c.TickTime, 3 * time.Second},
		{"minSessionTimeout", c.MinSessionTimeout, 6 * time.Second},
		{"maxSessionTimeout", c.MaxSessionTimeout, time.Minute},
		{"maxClientCnxns", c.Limits.ClientCnxns, 60},
		{"maxCnxns", c.Limits.Cnxns, 0},
		{"globalOutstandingLimit", c.Limits.Outstanding, 1000},
		{"jute.maxbuffer", c.Limits.FrameBytes, 1048575},
		{"largeRequestMaxBytes", c.Limits.LargeBytes, 100 << 20},
		{"largeRequestThreshold", c.Limits.LargeThreshold, -1},
		{"nio.sessionlessCnxnTimeout", c.Limits.Sessionless, 10 * time.Second},
		{"request_throttle", c.Limits.Throttle, Throttle{Stall: 100 * time.Millisecond, DropStale: true}},
		{"storage", c.Storage, Storage{PreAllocBytes: 64 << 20, SnapCount: 100000, SnapSizeBytes: 4 << 30, LogSizeBytes: -1024,
			ForceSync: true, SyncWarning: time.Second, StallLimit: time.Second, Digest: true, LastProcessedZxid: true, AutocreateDir: true, AutocreateDB: true}},
		{"autopurge", c.Autopurge, Autopurge{Retain: 3}},
		{"tree", c.Tree, Tree{ContainerInterval: time.Minute, ContainerPerMinute: 10000}},
		{"access", c.Access, Access{DigestHash: crypto.SHA1}},
		{"client", c.Client, ensemble.HostPort{}},
		{"words", strings.Join(c.FourLetterWords, ","), "srvr"},
		{"standaloneEnabled", c.Ensemble.StandaloneEnabled, true},
		{"cnxTimeout", c.Ensemble.ElectionConnect, 5 * time.Second},
		{"admin", c.Admin.Address.String(), "0.0.0.0:8080"},
		{"metrics", c.Metrics.Address.String(), "0.0.0.0:7000"},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("%s: got %+v, want %+v", x.name, x.got, x.want)
		}
	}
	if !strings.Contains(texts(c.Warnings), "clientPort is set neither here nor") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// TestDefaultServer shows the settings of a server without a configuration file.
func TestDefaultServer(t *testing.T) {
	c := Default()
	if c.Client.String() != "127.0.0.1:2181" || c.DataLogDir != "bellwether-data" || c.MaxSessionTimeout != 40*time.Second ||
		!c.Standalone() || !c.Admin.Enabled || c.Admin.Address.String() != "127.0.0.1:8080" {
		t.Errorf("%+v", c)
	}
}

// TestSettings shows for each honoured value where it is stored, in its forms and units.
func TestSettings(t *testing.T) {
	cases := []struct {
		line string
		got  func(c *Config) any
		want any
	}{
		{"dataLogDir=/log", func(c *Config) any { return c.DataLogDir }, "/log"},
		{"clientPort=2181\nclientPortAddress=::1", func(c *Config) any { return c.Client.String() }, "[::1]:2181"},
		{"clientPort=2181\nclientPortAddress=[::1]", func(c *Config) any { return c.Client.String() }, "[::1]:2181"},
		{"clientPort=0", func(c *Config) any { return c.Client.String() }, "0.0.0.0:0"},
		{"minSessionTimeout=5\nmaxSessionTimeout=7", func(c *Config) any { return c.MaxSessionTimeout - c.MinSessionTimeout }, 2 * time.Millisecond},
		{"tickTime=107374182", func(c *Config) any { return c.MaxSessionTimeout }, 2147483640 * time.Millisecond},
		{"tickTime=2000000000\nminSessionTimeout=4000\nmaxSessionTimeout=2147483647", func(c *Config) any { return c.MaxSessionTimeout }, 2147483647 * time.Millisecond},
		{"maxSessionTimeout=-1", func(c *Config) any { return c.MaxSessionTimeout }, time.Minute},
		{"maxClientCnxns=-1", func(c *Config) any { return c.Limits.ClientCnxns }, -1},
		{"maxCnxns=0x10", func(c *Config) any { return c.Limits.Cnxns }, 16},
		{"maxCnxns=#1f", func(c *Config) any { return c.Limits.Cnxns }, 31},
		{"maxCnxns=010", func(c *Config) any { return c.Limits.Cnxns }, 8},
		{"maxCnxns=-0X10", func(c *Config) any { return c.Limits.Cnxns }, -16},
		{"clientTcpKeepAlive=TRUE", func(c *Config) any { return c.Limits.KeepAlive }, true},
		{"throttled_op_wait_time=20", func(c *Config) any { return c.Limits.Throttle.OpWait }, 20 * time.Millisecond},
		{"preAllocSize=100", func(c *Config) any { return c.Storage.PreAllocBytes }, int64(102400)},
		{"snapCount=1", func(c *Config) any { return c.Storage.SnapCount }, 2},
		{"snapSizeLimitInKb=8388608", func(c *Config) any { return c.Storage.SnapSizeBytes }, int64(8) << 30},
		{"forceSync=no", func(c *Config) any { return c.Storage.ForceSync }, false},
		{"forceSync=yes", func(c *Config) any { return c.Storage.ForceSync }, true},
		{"snapshot.compression.method=gz", func(c *Config) any { return c.Storage.Compression }, "gz"},
		{"snapshot.compression.method=", func(c *Config) any { return c.Storage.Compression }, ""},
		{"autopurge.snapRetainCount=1", func(c *Config) any { return c.Autopurge.Retain }, 3},
		{"autopurge.purgeInterval=24", func(c *Config) any { return c.Autopurge.Interval }, 24 * time.Hour},
		{"skipACL=yes", func(c *Config) any { return c.Access.SkipACL }, true},
		{"skipACL=no", func(c *Config) any { return c.Access.SkipACL }, false},
		{"DigestAuthenticationProvider.digestAlg=sha3-256", func(c *Config) any { return c.Access.DigestHash }, crypto.SHA3_256},
		{"DigestAuthenticationProvider.superDigest=super:gG7s8t3oDEtIqF6DM9LlI/R+9Ss=", func(c *Config) any { return c.Access.SuperDigest }, "super:gG7s8t3oDEtIqF6DM9LlI/R+9Ss="},
		{"4lw.commands.whitelist=ruok , mntr,", func(c *Config) any { return strings.Join(c.FourLetterWords, ",") }, "ruok,mntr"},
		{"snapshotSizeFactor=-0.5", func(c *Config) any { return c.Ensemble.SnapshotFactor }, -0.5},
		{"peerType=OBSERVER", func(c *Config) any { return c.Ensemble.PeerType }, ensemble.Observer},
		{"leaderServes=no", func(c *Config) any { return c.Ensemble.LeaderServes }, false},
		{"tickTime=1\ntickTime = 7", func(c *Config) any { return c.TickTime }, 7 * time.Millisecond},
	}
	for _, x := range cases {
		if got := x.got(load(t, "", "dataDir=/nonexistent\n"+x.line)); got != x.want {
			t.Errorf("%s: got %v, want %v", x.line, got, x.want)
		}
	}
}

// TestJavaProperties shows that settings can be given as JVM flags, and that the file
// wins over them.
func TestJavaProperties(t *testing.T) {
	c := load(t, "-Djute.maxbuffer=8388608 -Dzookeeper.snapCount=7 -Dzookeeper.snapCount=0x9 -Dzookeeper.maxCnxns=5\t-Dreadonlymode.enabled=true"+
		" -Dfsync.warningthresholdms=20 -Dznode.container.maxNeverUsedIntervalMs=30 -Dzookeeper.skipACL=yes -Dzookeeper.multiAddress.enabled=true",
		"dataDir=/nonexistent\nmaxCnxns=6\nclientPort=1")
	if c.Limits.FrameBytes != 8388608 || c.Storage.SnapCount != 9 || c.Limits.Cnxns != 6 || !c.ReadOnlyMode ||
		c.Storage.SyncWarning != 20*time.Millisecond || c.Tree.ContainerNeverUsed != 30*time.Millisecond || !c.Access.SkipACL || !c.Ensemble.MultiAddress {
		t.Errorf("%+v", c)
	}
	if got, want := texts(c.Notices), "JVMFLAGS: -Dzookeeper.maxCnxns has no effect: "+c.File+":2: maxCnxns sets it, and the file wins"; got != want {
		t.Errorf("notices %s, want %s", got, want)
	}
	c = load(t, "-Dfsync.warningthresholdms=20 -Dzookeeper.fsync.warningthresholdms=30", "dataDir=/nonexistent")
	if c.Storage.SyncWarning != 30*time.Millisecond {
		t.Errorf("the property with the prefix must win, got %v", c.Storage.SyncWarning)
	}
}

// TestNotices shows the notice for each reason why a setting has no effect.
func TestNotices(t *testing.T) {
	cases := []struct{ flags, line, want string }{
		{"", "serverCnxnFactory=x", "zoo.cfg:2: serverCnxnFactory is ignored: there is one kind of client connection"},
		{"", "requireClientAuthScheme=sasl", "zoo.cfg:2: requireClientAuthScheme is ignored: ZooKeeper's code does not read it either, so clients need not log in: set sessionRequireClientSASLAuth=true, or enforce.auth.enabled and enforce.auth.schemes"},
		{"", "jaasLoginRenew=3600000", "zoo.cfg:2: jaasLoginRenew is ignored: tickets are renewed in time without it, and ZooKeeper's code does not read it either"},
		{"", "netty.server.x=1", "zoo.cfg:2: netty.server.x is ignored: there is no Netty"},
		{"", "flushDelay=0", ""},
		{"", "jute.maxbuffer.extrasize=5000", "zoo.cfg:2: jute.maxbuffer.extrasize is ignored: a log record may always be up to 64 MiB"},
		{"", "request_stale_connection_check=true", ""},
		{"", "flushDelay=5", "zoo.cfg:2: flushDelay is ignored: the writes that arrive during one fsync form the next batch; no timer or size is needed"},
		{"", "admin.enableServer=false", ""},
		{"", "admin.enableServer=no", `zoo.cfg:2: admin.enableServer is "no", which means true: only the exact word false has an effect`},
		{"", "admin.serverPort=9090", ""},
		{"", "jvm.pause.sleep.time.ms=soon", "zoo.cfg:2: jvm.pause.sleep.time.ms is ignored: there is no JVM"},
		{"", "audit.enable=true", ""},
		{"", "audit.impl.class=org.apache.zookeeper.audit.Slf4jAuditLogger", ""},
		{"", "audit.impl.class=my.Audit", "zoo.cfg:2: audit.impl.class is ignored: it is a Java class; audit.file and audit.format say where and how the audit log is written"},
		{"", "metricsProvider.numWorkerThreads=4", "zoo.cfg:2: metricsProvider.numWorkerThreads is ignored: updating metrics needs no threads"},
		{"", "superUser.2=bob\nkerberos.canonicalizeHostNames=false", ""},
		{"", "kerberos.canonicalizeHostNames=true", "zoo.cfg:2: kerberos.canonicalizeHostNames is ignored: the host names of server lines are used as they are written"},
		{"-Dzookeeper.server.principal=x", "", "JVMFLAGS: -Dzookeeper.server.principal is ignored: it is a setting of clients; the JAAS file names the principal of a server"},
		{"", "enforce.auth.schemes=sasl", "zoo.cfg:2: enforce.auth.schemes has no effect without enforce.auth.enabled=true"},
		{"", "skipACL=true", `zoo.cfg:2: skipACL is "true", which means no: only the exact word yes has an effect`},
		{"", "forceSync=false", `zoo.cfg:2: forceSync is "false", which means yes: only the exact word no has an effect`},
		{"", "zookeeper.skipACL=yes", "zoo.cfg:2: zookeeper.skipACL has no effect: in zoo.cfg it becomes the property zookeeper.zookeeper.skipACL; the key is skipACL"},
		{"", "zookeeper.requestThrottleLimit=1", "zoo.cfg:2: zookeeper.requestThrottleLimit has no effect: in zoo.cfg it becomes the property zookeeper.zookeeper.requestThrottleLimit; the key is request_throttle_max_requests"},
		{"", "jute.maxbuffer=5", "zoo.cfg:2: jute.maxbuffer has no effect in zoo.cfg, where it becomes the property zookeeper.jute.maxbuffer; give it as -Djute.maxbuffer=VALUE in JVMFLAGS"},
		{"", "maxTimeToWaitForEpoch=5", "zoo.cfg:2: maxTimeToWaitForEpoch has no effect: the correct key is leader.maxTimeToWaitForEpoch"},
		{"", "maxSessionTimeOut=5", "zoo.cfg:2: maxSessionTimeOut is ignored: ZooKeeper has no such key; did you mean maxSessionTimeout?"},
		{"", "nonsense=5", "zoo.cfg:2: nonsense is ignored: ZooKeeper has no such key"},
		{"", "=5", "zoo.cfg:2: is ignored: ZooKeeper has no such key"},
		{"", "authProvider.1=org.apache.zookeeper.server.auth.DigestAuthenticationProvider", ""},
		{"", "sslQuorum=false\nenforce.auth.enabled=FALSE\nDigestAuthenticationProvider.enabled=true", ""},
		{"-Xmx1000m", "", "JVMFLAGS: -Xmx1000m is ignored: there is no Java heap; the environment variable GOMEMLIMIT sets a soft limit"},
		{"-XX:+UseG1GC", "", "JVMFLAGS: -XX:+UseG1GC is ignored: it is a flag of the Java virtual machine"},
		{"-javaagent:/jmx_prometheus_javaagent.jar=9404:/c.yml", "", "JVMFLAGS: -javaagent:/jmx_prometheus_javaagent.jar=9404:/c.yml is ignored: there are no Java agents, so this one's metrics port will not be open"},
		{"-Dcom.sun.management.jmxremote", "", "JVMFLAGS: -Dcom.sun.management.jmxremote is ignored: it is a setting of Java or of a library"},
		{"-Dzookeeper.jute.maxbuffer=1", "", "JVMFLAGS: -Dzookeeper.jute.maxbuffer has no effect: the property is jute.maxbuffer, without zookeeper."},
		{"-DsnapCount=1", "", "JVMFLAGS: -DsnapCount has no effect: the property is zookeeper.snapCount"},
		{"-Dzookeeper.clientPort=1", "", "JVMFLAGS: -Dzookeeper.clientPort has no effect: clientPort is read from zoo.cfg only"},
		{"-Dzookeeper.throttledOpWaitTime=1", "", "JVMFLAGS: -Dzookeeper.throttledOpWaitTime has no effect: the name that works is zookeeper.throttled_op_wait_time"},
		{"-Dzookeeper.root.logger=INFO", "", "JVMFLAGS: -Dzookeeper.root.logger is ignored: ZooKeeper has no such property"},
	}
	for _, x := range cases {
		if got := texts(load(t, x.flags, "dataDir=/nonexistent\n"+x.line).Notices); got != x.want {
			t.Errorf("%s%s:\n got %s\nwant %s", x.flags, x.line, got, x.want)
		}
	}
}

// TestNoticesAreInOrder shows that notices are ordered by line, with flags last, and that
// none is repeated.
func TestNoticesAreInOrder(t *testing.T) {
	c := load(t, "-Xss1m", "b=1\nwatchManagerName=x\ndataDir=/nonexistent\nflushDelay=1\na=1\nb=2\n")
	var got []string
	for _, n := range c.Notices {
		got = append(got, n.Key)
	}
	if want := []string{"watchManagerName", "flushDelay", "a", "b", "-Xss1m"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !strings.Contains(texts(c.Warnings), "zoo.cfg:1: b is overridden by line 6") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// TestErrors shows the text of each kind of error.
func TestErrors(t *testing.T) {
	super := "DigestAuthenticationProvider.superDigest"
	cases := []struct{ flags, text, want string }{
		{"", "clientPort=1", "DIR/zoo.cfg: dataDir is not set; add a line dataDir=PATH with the directory for snapshots and myid"},
		{"", "dataDir=", "DIR/zoo.cfg:1: dataDir is not allowed; allowed is a path; correct it or remove it"},
		{"", "dataDir=/nonexistent\n# x\ntickTime=many", "DIR/zoo.cfg:3: tickTime=many is not allowed; allowed is a number of ms from 1 to 2147483647; correct it or remove it for the default, 3000"},
		{"", "dataDir=/nonexistent\ntickTime=0", "DIR/zoo.cfg:2: tickTime=0 is not allowed"},
		{"", "dataDir=/nonexistent\nmaxClientCnxns=5 # five", "DIR/zoo.cfg:2: maxClientCnxns=5 # five is not allowed; allowed is a number that fits in 32 bits"},
		{"", "dataDir=/nonexistent\nclientPort=65536", "clientPort=65536 is not allowed; allowed is a number from 0 to 65535; correct it or remove it for the default, none"},
		{"", "dataDir=/nonexistent\nclientPort=0x10", "clientPort=0x10 is not allowed"},
		{"", "dataDir=/nonexistent\nreconfigEnabled=yes", "reconfigEnabled=yes is not allowed; allowed is true or false"},
		{"", "dataDir=/nonexistent\nenforceQuota=yes", "enforceQuota=yes is not allowed; allowed is true or false"},
		{"", "dataDir=/nonexistent\nsnapCount=abc", "snapCount=abc is not allowed; allowed is a number that fits in 32 bits"},
		{"", "dataDir=/nonexistent\nsnapCount=3000000000", "snapCount=3000000000 is not allowed"},
		{"", "dataDir=/nonexistent\nsnapCount=0x", "snapCount=0x is not allowed"},
		{"", "dataDir=/nonexistent\nsnapCount=0x-1", "snapCount=0x-1 is not allowed"},
		{"", "dataDir=/nonexistent\nsnapCount=09", "snapCount=09 is not allowed"},
		{"", "dataDir=/nonexistent\ncommitLogCount=0x10", "commitLogCount=0x10 is not allowed"},
		{"", "dataDir=/nonexistent\nsnapshotSizeFactor=big", "snapshotSizeFactor=big is not allowed; allowed is a decimal fraction"},
		{"", "dataDir=/nonexistent\nsnapshotSizeFactor=NaN", "snapshotSizeFactor=NaN is not allowed"},
		{"", "dataDir=/nonexistent\nconnection_throttle_drop_increase=1.5", "connection_throttle_drop_increase=1.5 is not allowed; allowed is a decimal fraction from 0 to 1; correct it or remove it for the default, 0.02"},
		{"", "dataDir=/nonexistent\nconnection_throttle_tokens=-1", "connection_throttle_tokens=-1 is not allowed; allowed is a number from 0 to 2147483647"},
		{"", "dataDir=/nonexistent\nconnection_throttle_fill_time=0", "connection_throttle_fill_time=0 is not allowed; allowed is a number of ms from 1"},
		{"", "dataDir=/nonexistent\nclientIPv6Prefix=0", "clientIPv6Prefix=0 is not allowed; allowed is a number from 1 to 128; correct it or remove it for the default, 64"},
		{"", "dataDir=/nonexistent\nclientRequestsPerSecond=-5", "clientRequestsPerSecond=-5 is not allowed; allowed is a number from 0 to 1000000000; correct it or remove it for the default, 0"},
		{"", "dataDir=/nonexistent\nclientBytesPerSecond=1M", "clientBytesPerSecond=1M is not allowed; allowed is a number of bytes from 0 to 1000000000"},
		{"", "dataDir=/nonexistent\npathRequestsPerSecond=/a", "pathRequestsPerSecond=/a is not allowed; allowed is a list PATH:NUMBER,PATH:NUMBER of at most 100 different absolute paths, with numbers from 1 to 1000000000; correct it or remove it for the default, none"},
		{"", "dataDir=/nonexistent\npathRequestsPerSecond=a:1", "pathRequestsPerSecond=a:1 is not allowed"},
		{"", "dataDir=/nonexistent\npathRequestsPerSecond=/a/:1", "pathRequestsPerSecond=/a/:1 is not allowed"},
		{"", "dataDir=/nonexistent\npathRequestsPerSecond=/a//b:1", "pathRequestsPerSecond=/a//b:1 is not allowed"},
		{"", "dataDir=/nonexistent\npathRequestsPerSecond=/a:1,/b:2,/a:3", "/a:1,/b:2,/a:3 is not allowed"},
		{"", "dataDir=/nonexistent\npathBytesPerSecond=/a:0", "pathBytesPerSecond=/a:0 is not allowed"},
		{"", "dataDir=/nonexistent\npathBytesPerSecond=/a:1000000001", "pathBytesPerSecond=/a:1000000001 is not allowed"},
		{"", "dataDir=/nonexistent\nloginDelayMax=1m", "loginDelayMax=1m is not allowed; allowed is a number of ms from 0 to 60000"},
		{"", "dataDir=/nonexistent\nelectionAlg=1", "electionAlg=1 is not allowed; allowed is a number from 3 to 3"},
		{"", "dataDir=/nonexistent\npeerType=leader", "peerType=leader is not allowed; allowed is one of participant, observer"},
		{"", "dataDir=/nonexistent\nsnapshot.compression.method=zstd", "zstd is not allowed; allowed is one of nothing, gz, snappy"},
		{"", "dataDir=/nonexistent\nDigestAuthenticationProvider.digestAlg=SHA9", "SHA9 is not allowed; allowed is one of SHA1, SHA-1,"},
		{"-Djute.maxbuffer=1m", "dataDir=/nonexistent", "JVMFLAGS: -Djute.maxbuffer=1m is not allowed; allowed is a number of bytes from 1 to 33554432; correct it or remove it for the default, 1048575"},
		{"", "dataDir=/nonexistent\nclientPortAddress=::1", "DIR/zoo.cfg:2: clientPortAddress=::1 is set but clientPort is not; add a line clientPort=2181, or remove the address"},
		{"", "dataDir=/nonexistent\nminSessionTimeout=99999", "DIR/zoo.cfg:2: minSessionTimeout=99999 makes the shortest session timeout (1m39.999s) longer than the longest (1m0s)"},
		{"", "dataDir=/nonexistent\nmaxSessionTimeout=9", "DIR/zoo.cfg:2: maxSessionTimeout=9 makes the shortest"},
		{"", "dataDir=/nonexistent\ntickTime=107374183", "DIR/zoo.cfg:2: tickTime=107374183 makes the longest session timeout, 20 × tickTime, 2147483660 ms, but at most 2147483647 ms are possible; lower tickTime, or set maxSessionTimeout"},
		{"", "dataDir=/nonexistent\nmaxSessionTimeout=-1\ntickTime=2147483647", "zoo.cfg:3: tickTime=2147483647 makes the longest session timeout, 20 × tickTime, 42949672940 ms"},
		{"", "dataDir=/nonexistent\nmaxSessionTimeout=2147483647\ntickTime=1073741824", "zoo.cfg:3: tickTime=1073741824 makes the shortest session timeout, 2 × tickTime, 2147483648 ms, but at most 2147483647 ms are possible; lower tickTime, or set minSessionTimeout"},
		{"", "dataDir=/nonexistent\n" + super + "=super:secret", "DIR/zoo.cfg:2: " + super + " is not allowed; allowed is NAME:HASH, where HASH is the base64 of the SHA-1 of NAME:PASSWORD, 20 bytes"},
		{"", "dataDir=C:\\users", `DIR/zoo.cfg:1: "\\users" is not a \u escape: four hexadecimal digits must follow; write \\ or / in Windows paths`},
	}
	for _, x := range cases {
		if got := refuse(t, x.flags, x.text); !strings.Contains(got, x.want) {
			t.Errorf("%s:\n got %s\nwant %s", x.text, got, x.want)
		}
	}
	if got := refuse(t, "", "dataDir=/nonexistent\n"+super+"=super:secret"); strings.Contains(got, "secret") {
		t.Errorf("the error repeats a secret: %s", got)
	}
}

// TestAllErrorsAtOnce shows that every bad line is reported, in order, and that errors.As
// finds the first error.
func TestAllErrorsAtOnce(t *testing.T) {
	path := write(t, "tickTime=x\ndataDir=/nonexistent\nmaxCnxns=y\nquorum.auth.enableSasl=x\n")
	_, err := Load(path, "-Djute.maxbuffer=z")
	var first *Error
	if !errors.As(err, &first) || first.Key != "tickTime" || first.Line != 1 || first.Value != "x" || first.File != path || first.Allowed == "" || first.Remedy == "" {
		t.Errorf("first error: %+v", first)
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{":1: tickTime=x", ":3: maxCnxns=y", ":4: quorum.auth.enableSasl=x", "JVMFLAGS: -Djute.maxbuffer=z"} {
		if len(lines) != 4 || !strings.Contains(lines[i], want) {
			t.Fatalf("got %s", err)
		}
	}
}

// TestSecurityKeysStopTheStart shows that the server does not start without a security feature
// that the configuration asks for.
func TestSecurityKeysStopTheStart(t *testing.T) {
	cases := []struct{ flags, line, want string }{
		{"", "secureClientPort=2281", "zoo.cfg: ssl.keyStore.location is not set, and secureClientPort or client.portUnification needs it"},
		{"", "client.portUnification=true", "ssl.keyStore.location is not set"},
		{"", "secureClientPort=0", "ssl.keyStore.location is not set"},
		{"", "sslQuorum=true", "zoo.cfg: ssl.quorum.keyStore.location is not set, and sslQuorum or portUnification needs it"},
		{"", "portUnification=TRUE", "ssl.quorum.keyStore.location is not set"},
		{"", "secureClientPortAddress=a", "secureClientPortAddress=a is set but secureClientPort is not"},
		{"", "clientPort=7\nsecureClientPort=7\nssl.keyStore.location=/k.pem", "zoo.cfg:3: secureClientPort=7 is 7, like clientPort"},
		{"", "ssl.keyStore.location=/k.bcfks", "zoo.cfg:2: ssl.keyStore.location=/k.bcfks cannot be used:"},
		{"", "ssl.context.supplier.class=x", "zoo.cfg:2: ssl.context.supplier.class=x cannot be used: it names a Java class"},
		{"", "ssl.quorum.ciphersuites=TLS_KRB5_WITH_RC4_128_MD5", "zoo.cfg:2: ssl.quorum.ciphersuites=TLS_KRB5_WITH_RC4_128_MD5 cannot be used:"},
		{"", "sslQuorum=maybe", "sslQuorum=maybe is not allowed; allowed is true or false"},
		{"", "authProvider.1=org.apache.zookeeper.server.auth.KeyAuthenticationProvider", "authProvider.1=org.apache.zookeeper.server.auth.KeyAuthenticationProvider is not supported by this version: schemes of other classes"},
		{"", "authProvider.x509=my.Provider", "is not supported"},
		{"", "sessionRequireClientSASLAuth=true", "zoo.cfg:2: sessionRequireClientSASLAuth=true needs the scheme sasl, which is not switched on; add a line authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
		{"", "enforce.auth.enabled=true", "zoo.cfg:2: enforce.auth.enabled=true needs a scheme, and enforce.auth.schemes names none; add a line such as enforce.auth.schemes=sasl"},
		{"", "enforce.auth.enabled=true\nenforce.auth.schemes=digest,sasl", "zoo.cfg:3: enforce.auth.schemes=digest,sasl names the scheme sasl, which is not switched on; add a line authProvider.1=org"},
		{"", "enforce.auth.enabled=true\nenforce.auth.schemes=x509", "enforce.auth.schemes=x509 names the scheme x509, but no client can connect over TLS"},
		{"", "enforce.auth.enabled=true\nenforce.auth.schemes=digest,super", `names "super", which is no scheme of this server; name some of digest, ip, sasl and x509`},
		{"", "security.auth_to_local=RULE:[1:$1", "zoo.cfg:2: security.auth_to_local=RULE:[1:$1 is not allowed: "},
		{"", "sasl.serverconfig=Clients", "zoo.cfg:2: sasl.serverconfig=Clients names the section with which clients log in, but no JAAS file is named; name the file with -Djava.security.auth.login.config=PATH"},
		{"", "enforce.auth.enabled=yes", "enforce.auth.enabled=yes is not allowed"},
		{"", "DigestAuthenticationProvider.enabled=false", "is not supported by this version: disabling the scheme digest"},
		{"-Djava.security.auth.login.config=/nonexistent/jaas.conf", "", "JVMFLAGS: -Djava.security.auth.login.config=/nonexistent/jaas.conf cannot be used: open /nonexistent/jaas.conf: no such file"},
		{"-Dzookeeper.authProvider.sasl=x.Y", "", "JVMFLAGS: -Dzookeeper.authProvider.sasl=x.Y is not supported"},
		{"-Dzookeeper.sessionRequireClientSASLAuth=true", "", "JVMFLAGS: -Dzookeeper.sessionRequireClientSASLAuth=true needs the scheme sasl"},
	}
	for _, x := range cases {
		if got := refuse(t, x.flags, "dataDir=/nonexistent\n"+x.line); !strings.Contains(got, x.want) {
			t.Errorf("%s%s: got %s", x.flags, x.line, got)
		}
	}
	if got := refuse(t, "", "dataDir=/nonexistent\nssl.keyStore.location=/k.bcfks\nssl.keyStore.password=hush\nssl.quorum.trustStore.password=hush\nssl.unheard.of=hush"); strings.Contains(got, "hush") {
		t.Errorf("the error repeats a password: %s", got)
	}
}

// TestWarnings shows the warnings about settings that are allowed but unwise.
func TestWarnings(t *testing.T) {
	cases := []struct{ line, want string }{
		{"autopurge.snapRetainCount=2", "zoo.cfg:3: autopurge.snapRetainCount is 2, below the minimum; 3 is used"},
		{"snapCount=0", "zoo.cfg:3: snapCount is 0, below the minimum; 2 is used"},
		{"forceSync=no", "zoo.cfg:3: forceSync is no: a power failure loses acknowledged writes"},
		{"skipACL=yes", "zoo.cfg:3: skipACL is yes: every client may read and change everything"},
		{"dataLogDir=logs", "zoo.cfg:3: dataLogDir is relative to the working directory; write ./ before the path if this is intended"},
		{"dataLogDir=/tmp/zookeeper", "zoo.cfg:3: dataLogDir is under /tmp, which many systems empty at boot"},
		{"dataLogDir=./logs", ""},
		{"digest.enabled=false", "digest.enabled is false"},
		{"snapshot.trust.empty=true", "snapshot.trust.empty is true"},
		{"metricsProvider.httpPort=7001", "zoo.cfg:3: metricsProvider.httpPort has no effect without metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider, as in ZooKeeper: no port is opened for metrics"},
	}
	for _, x := range cases {
		c := load(t, "", "dataDir=/nonexistent\nclientPort=1\n"+x.line+"\nautopurge.purgeInterval=1")
		if got := texts(c.Warnings); !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s: got %s", x.line, got)
		}
	}
}

// TestWarningsAboutTLS shows the warnings about settings with which TLS does not prove who a server or a client
// is.
func TestWarningsAboutTLS(t *testing.T) {
	const stores, login = "\nssl.keyStore.location=/k.pem\nssl.quorum.keyStore.location=/k.pem\nsslQuorum=true\n",
		"\nenforce.auth.enabled=true\nsecureClientPort=5\nenforce.auth.schemes="
	for _, x := range []struct{ lines, want string }{
		{"ssl.quorum.clientAuth=need", ""},
		{"ssl.quorum.clientAuth=want", "ssl.quorum.clientAuth is want: every program that reaches the quorum and election ports can act as a member"},
		{"ssl.quorum.clientAuth=none", "ssl.quorum.clientAuth is none: every program"},
		{"ssl.quorum.hostnameVerification=false", "ssl.quorum.hostnameVerification is false: every server with a certificate that is trusted here can act as any member"},
		{"portUnification=true", "portUnification is true: every program that reaches the quorum and election ports can act as a member, without TLS"},
		{"sslQuorum=false\nportUnification=true", ""},
		{"ssl.clientAuth=none" + login + "x509", "ssl.clientAuth is none, but enforce.auth.schemes asks for the id in a certificate: no client will be served"},
		{"ssl.clientAuth=none" + login + "x509,digest", ""},
		{"ssl.clientAuth=want" + login + "x509", ""},
	} {
		c := load(t, "", trio+stores+x.lines, "data/myid", "2\n")
		got := texts(c.Warnings)
		if !strings.Contains(got, x.want) || x.want == "" && strings.Contains(got, "can act as") || x.want == "" && strings.Contains(got, "no client") {
			t.Errorf("%s: got %s", x.lines, got)
		}
		if got := refusals(c) > 0; got != strings.Contains(x.want, "no client") {
			t.Errorf("%s: a warning says that clients are refused: %v", x.lines, got)
		}
	}
}

// TestReadOnlyWordOfAMember shows that the word isro is allowed in any ensemble.
func TestReadOnlyWordOfAMember(t *testing.T) {
	c := load(t, "", trio, "data/myid", "2\n")
	if !c.AllowsWord("isro") || c.AllowsWord("ruok") {
		t.Errorf("isro %v, ruok %v", c.AllowsWord("isro"), c.AllowsWord("ruok"))
	}
}

// TestAllowsWord shows how the whitelist of four-letter words is applied.
func TestAllowsWord(t *testing.T) {
	for _, x := range []struct{ flags, list, yes, no string }{
		{"", "", "srvr", "ruok isro"},
		{"", "4lw.commands.whitelist=", "srvr", "ruok"},
		{"", "4lw.commands.whitelist=ruok, stat", "srvr ruok stat", "mntr isro *"},
		{"", "4lw.commands.whitelist=ruok,*", "srvr mntr isro", ""},
		{"-Dreadonlymode.enabled=true", "", "srvr isro", "ruok"},
	} {
		c := load(t, x.flags, "dataDir=/nonexistent\n"+x.list)
		for _, w := range strings.Fields(x.yes) {
			if !c.AllowsWord(w) {
				t.Errorf("%s: %s is not allowed", x.list, w)
			}
		}
		for _, w := range strings.Fields(x.no) {
			if c.AllowsWord(w) {
				t.Errorf("%s: %s is allowed", x.list, w)
			}
		}
	}
}

// TestFilesThatCannotBeRead shows the errors for files that cannot be read at all.
func TestFilesThatCannotBeRead(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if got := refuse(t, "", strings.Repeat("#", fileMax+1)); !strings.Contains(got, "longer than 1048576 bytes") {
		t.Errorf("long file: %s", got)
	}
}

// FuzzLoad shows that no file and no flags cause a panic, and that a configuration that
// loads has valid values.
func FuzzLoad(f *testing.F) {
	f.Add(sample, "-Djute.maxbuffer=1")
	f.Add("dataDir=d\nserver.1=[::1]:1:2;3\ngroup.1=1\nssl.x=\nskipACL=z", "-Dzookeeper.x -Xmx1")
	f.Fuzz(func(t *testing.T, text, flags string) {
		path := filepath.Join(t.TempDir(), "zoo.cfg")
		if strings.Contains(text, "dynamicConfigFile") || strings.Contains(flags, "dynamicConfigFile") {
			return
		}
		if err := os.WriteFile(path, []byte(text+"\ndataDir="+t.TempDir()), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, flags)
		if err != nil {
			return
		}
		if c.TickTime <= 0 || c.MinSessionTimeout > c.MaxSessionTimeout || c.Storage.SnapCount < 2 || c.Limits.FrameBytes < 1 || c.Client.Port < 0 {
			t.Errorf("%q gives %+v", text, c)
		}
	})
}

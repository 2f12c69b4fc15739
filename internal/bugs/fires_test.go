package bugs

import (
	"strings"
	"testing"
)

// firing lists patches, each with the rules of the simulator that must detect its bug: for each
// of these rules, the test must find a seed that breaks it.
var firing = []struct{ patch, rules string }{
	{"fires-quorum", "PrefixConsistency,Leadership,Agreement,EqualDigest,AtMostOnce,AsIssued,Shown"},
	{"fires-expiry", "PossibleLeaders,Claims,Expiry"},
	{"fires-hole", "NoHole,NothingUndone"},
	{"fires-content", "Integrity"},
	{"fires-ephemeral", "EphemeralsOfSessions"},
	{"fires-client", "AckedWrites,SessionOrder,WatchOrder,RealEvents"},
	{"fires-token", "Fence"},
	{"fires-sync", "RealTime,Linearizability,Fresh"},
	{"fires-order", "TotalOrder,LocalPrimaryOrder,GlobalPrimaryOrder"},
	{"2845", "PrimaryIntegrity"},
	{"4785", "Durability"},
	{"fires-lease", "Leases"},
	{"fires-promise", "Quorums"},
	{"fires-kept", "KeptConnections"},
	{"fires-late", "Expiry"},
	{"fires-window", "Promises"},
}

// TestRulesFire shows that the rules of the simulator detect bugs in the code, not only the
// events that a test reports to them (TestEachRuleCanBeBroken of sim covers all rules).
func TestRulesFire(t *testing.T) {
	for _, f := range firing {
		t.Run(f.patch, func(t *testing.T) {
			t.Parallel()
			out, _ := runWith(t, scenario{"sim", "TestRuleFires", f.patch}, "-run=^TestRuleFires$", "-timeout=10m", "-failfast=false", "-args", "-fires", f.rules)
			for _, rule := range strings.Split(f.rules, ",") {
				if !strings.Contains(out, " breaks "+rule) {
					t.Errorf("%s: no seed breaks %s\n%s", load(t, f.patch).What, rule, tail(out))
				}
			}
		})
	}
}

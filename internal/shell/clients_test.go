package shell

import (
	"maps"
	"testing"

	"bellwether/wire"
)

// The words are read as ZooKeeper's leader and followers write them.
func TestParseClients(t *testing.T) {
	addresses := map[wire.SessionID]string{}
	parseCons(" /127.0.0.1:52582[0](queued=0,recved=1,sent=0)\n"+
		" /127.0.0.1:52560[1](queued=0,recved=4,sent=4,sid=0x1000010b4700001,lop=CREA,est=1795239103623,to=20000)\n"+
		" /[fd00::1]:7[1](queued=0,recved=5,sent=5,sid=0x1000010b4700000,lop=GETC)\n\n", addresses)
	if want := map[wire.SessionID]string{0x1000010b4700001: "127.0.0.1:52560", 0x1000010b4700000: "[fd00::1]:7"}; !maps.Equal(addresses, want) {
		t.Errorf("%v", addresses)
	}
	for text, want := range map[string]map[wire.SessionID]bool{
		"SessionTracker dump:\nSession Sets (1)/(2):\n2 expire at Sat Nov 21 05:32:14 UTC 2026:\n\t0x1000010b4700000\n\t0x100000edcd00000\n" +
			"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x7:\n\t/w/e\n": {0x1000010b4700000: true, 0x100000edcd00000: true},
		"SessionTracker dump:\nGlobal Sessions(1):\n0x4000011ecd70000\t20000ms\nephemeral nodes dump:\n": {0x4000011ecd70000: true},
		"dump is not executed because it is not in the whitelist.\n":                                     {},
	} {
		got := map[wire.SessionID]bool{}
		if parseDump(text, got); !maps.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

package config

import (
	"strings"
	"testing"
	"time"
)

// TestAdminSettings shows that the keys of the admin server are stored, with ZooKeeper's defaults.
func TestAdminSettings(t *testing.T) {
	c := load(t, "", "dataDir=/x\nclientPort=1")
	want := Admin{Enabled: true, Address: c.Admin.Address, CommandURL: "/commands", IdleTimeout: 30 * time.Second, HTTPVersion: 11,
		RateInterval: 5 * time.Minute, Snapshot: true, Restore: true, Connections: 256, EventStreams: 100}
	if c.Admin != want || c.Admin.Address.String() != "0.0.0.0:8080" {
		t.Errorf("defaults: %+v", c.Admin)
	}
	c = load(t, "", "dataDir=/x\nclientPort=1\nadmin.enableServer=FALSE\nadmin.portUnification=TRUE\nssl.quorum.keyStore.location=/k.pem\nadmin.idleTimeout=010\nadmin.snapshot.enabled=false")
	if a := c.Admin; !a.Enabled || !a.TLS() || a.IdleTimeout != 8*time.Millisecond || a.Snapshot || c.TLS.Servers.KeyStore.Location != "/k.pem" {
		t.Errorf("%+v", a)
	}
}

// TestAdminSettingsAreChecked shows the error or warning for settings of the admin server that cannot work.
func TestAdminSettingsAreChecked(t *testing.T) {
	for lines, want := range map[string]string{
		"admin.commandURL=commands":                   "admin.commandURL=commands does not begin with /",
		"admin.commandURL=/":                          "admin.commandURL=/ ends with /",
		"admin.commandURL=/a/../b":                    "is not a path that a request can name unchanged",
		"admin.commandURL=/v1/x":                      "for something else",
		"admin.serverPort=65536":                      "admin.serverPort",
		"admin.forceHttps=true":                       "ssl.quorum.keyStore.location is not set",
		"admin.rateLimiterIntervalInMS=0x10":          "admin.rateLimiterIntervalInMS",
		"admin.needClientAuth=true":                   "admin.needClientAuth has no effect without admin.forceHttps",
		"admin.tokenFile=/t":                          "lets operators sign in only from this machine",
		"admin.certificateFile=/t":                    "admin.certificateFile has no effect without",
		"admin.enableServer=false\nadmin.tokenFile=/": "because admin.enableServer is false",
	} {
		text, got := "dataDir=/x\nclientPort=1\n"+lines, ""
		if c, err := Load(write(t, text), ""); err != nil {
			got = err.Error()
		} else {
			got = texts(c.Warnings)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", lines, got, want)
		}
	}
}

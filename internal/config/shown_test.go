package config

import (
	"strings"
	"testing"
)

// TestShownTexts shows that operators see the file and the settings, but no passwords.
func TestShownTexts(t *testing.T) {
	const text = "# password of nobody\ndataDir=/x\nclientPort=1\nDigestAuthenticationProvider.superDigest=super:c2VjcmV0MTIzNDU2Nzg5MDEyMzQ=\n" +
		"ssl.keyStore.password : hunter2 \\\n   and more\nssl.keyStore.passwordPath=/etc/pw\nmy.secretToken=t0ken\n" +
		"admin.idleTimeout=5\nconnection_throttle_tokens=7\ndigest.enabled=true\nmaxClientCnxns=9\n"
	c := load(t, "-Djute.maxbuffer=5000 -Dzookeeper.ssl.trustStore.password=hunter3", strings.Replace(text, "c2VjcmV0MTIzNDU2Nzg5MDEyMzQ=", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1))
	got := c.Text()
	for _, secret := range []string{"hunter2", "and more", "t0ken", "AAAAAAAA"} {
		if strings.Contains(got, secret) {
			t.Errorf("the text contains %q:\n%s", secret, got)
		}
	}
	for _, want := range []string{"# password of nobody\n", "ssl.keyStore.password=(hidden)\n", "ssl.keyStore.passwordPath=/etc/pw\n", "connection_throttle_tokens=7\n", "maxClientCnxns=9\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the text does not contain %q:\n%s", want, got)
		}
	}
	all := map[string]string{}
	for _, p := range c.Properties() {
		all[p[0]] = p[1]
	}
	for name, want := range map[string]string{
		"jute.maxbuffer": "5000", "zookeeper.admin.idleTimeout": "5", "zookeeper.ssl.keyStore.password": hidden, "zookeeper.ssl.trustStore.password": hidden,
		"zookeeper.DigestAuthenticationProvider.superDigest": hidden, "zookeeper.digest.enabled": "true", "zookeeper.dataDir": "",
	} {
		if all[name] != want {
			t.Errorf("%s: %q, want %q", name, all[name], want)
		}
	}
}

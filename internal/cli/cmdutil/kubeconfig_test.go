// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func TestNamespace(t *testing.T) {
	for _, tt := range []struct {
		name string
		flag string
		all  bool
		want string
	}{
		{"of the kubeconfig", "", false, "of-a"},
		{"of -n", "shop", false, "shop"},
		{"all", "shop", true, ""},
	} {
		k := envOf(t, "a").Kubeconfig
		context := "a"
		k.Flags.Context, k.Flags.Namespace = &context, &tt.flag
		if got, err := k.Namespace(tt.all); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// TestConfigWithoutCluster checks that a missing cluster configuration is an error, instead of a
// request to localhost.
func TestConfigWithoutCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	k := envOf(t).Kubeconfig
	_, err := k.Config()
	if code, message := ExplainError(err); code != ExitUnreachable {
		t.Errorf("exit code %d: %s", code, message)
	}
	server := "http://127.0.0.1:1"
	k = envOf(t).Kubeconfig
	k.Flags.APIServer = &server
	config, err := k.Config()
	if err != nil || config.Host != server {
		t.Errorf("with --server: %v, %v", config, err)
	}
}

// TestForContext checks that ForContext drops the flags for a single cluster, including secrets.
func TestForContext(t *testing.T) {
	k := envOf(t, "a", "b").Kubeconfig
	token, server, timeout, user := "secret", "http://127.0.0.1:2", "3s", "alice"
	k.Flags.BearerToken, k.Flags.APIServer, k.Flags.Timeout, k.Flags.Impersonate = &token, &server, &timeout, &user
	other := k.ForContext("b")
	config, err := other.Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.BearerToken != "" || config.Host != "http://127.0.0.1:1" {
		t.Errorf("the flags of another cluster are kept: token %q, server %s", config.BearerToken, config.Host)
	}
	if config.Timeout != 3*time.Second || config.Impersonate.UserName != user {
		t.Errorf("timeout %s, impersonated %q: flags for all clusters are lost", config.Timeout, config.Impersonate.UserName)
	}
	if namespace, err := other.Namespace(false); err != nil || namespace != "of-b" {
		t.Errorf("the namespace is %q, %v", namespace, err)
	}
}

func TestAnswerWithin(t *testing.T) {
	for _, tt := range []struct {
		timeout string
		want    time.Duration
		fails   bool
	}{
		{"0", answerWithin, false},
		{"3s", 3 * time.Second, false},
		{"2", 2 * time.Second, false},
		{"soon", 0, true},
	} {
		flags := genericclioptions.NewConfigFlags(true)
		flags.Timeout = &tt.timeout
		k := Kubeconfig{flags}
		if got, err := k.answerWithin(); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("--request-timeout %s: %s, %v", tt.timeout, got, err)
		}
	}
}

// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// upstream sends requests to the API server. Clients with the client certificate in the proxy's
// kubeconfig act as the user in the upstream configuration; other clients act with their own
// credentials.
type upstream struct {
	url *url.URL
	// trusted sends the requests of clients with the proxy's client certificate, and others sends
	// all other requests. Both use HTTP/2 if the API server supports it.
	trusted, others http.RoundTripper
	// trustedUpgrade and othersUpgrade use HTTP/1.1 for upgrade requests: exec and port-forward
	// need protocol upgrades, which HTTP/2 does not support.
	trustedUpgrade, othersUpgrade http.RoundTripper
}

func newUpstream(config *rest.Config) (*upstream, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	config = rest.CopyConfig(config)
	// Do not request compression: the client and the API server negotiate it.
	config.DisableCompression = true
	u := &upstream{url: target}
	for transport, variant := range map[*http.RoundTripper]*rest.Config{
		&u.trusted: config, &u.others: rest.AnonymousClientConfig(config),
		&u.trustedUpgrade: http1(config), &u.othersUpgrade: http1(rest.AnonymousClientConfig(config)),
	} {
		if *transport, err = rest.TransportFor(variant); err != nil {
			return nil, fmt.Errorf("the credentials for the API server: %w", err)
		}
	}
	return u, nil
}

func http1(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	return config
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// RoundTrip implements http.RoundTripper.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	trusted, upgrade := exchangeOf(r.Context()).trusted, r.Header.Get("Upgrade") != ""
	transport := u.others
	switch {
	case trusted && upgrade:
		transport = u.trustedUpgrade
	case trusted:
		transport = u.trusted
	case upgrade:
		transport = u.othersUpgrade
	}
	return transport.RoundTrip(r)
}

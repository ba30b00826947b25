// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"testing"
)

func TestLinks(t *testing.T) {
	for _, tc := range []struct{ context, path, page, pool, command string }{
		{"", "/capacity#pending", "/capacity#pending", "/pools/a%2Fb", `kubectl tide pools describe 'a b'`},
		{"edge/1", "/capacity#pending", "/capacity?context=edge%2F1#pending", "/pools/a%2Fb?context=edge%2F1", `kubectl tide pools describe 'a b' --context edge/1`},
		{"prod", "/", "/?context=prod", "/pools/a%2Fb?context=prod", `kubectl tide pools describe 'a b' --context prod`},
	} {
		l := links{tc.context}
		if got := l.page(tc.path); got != tc.page {
			t.Errorf("%q: the page %s is at %s, want %s", tc.context, tc.path, got, tc.page)
		}
		if got := l.pool("a/b"); got != tc.pool {
			t.Errorf("%q: the pool is at %s, want %s", tc.context, got, tc.pool)
		}
		if got := l.command([]string{"pools", "describe", "a b"}); got != tc.command {
			t.Errorf("%q: the command is %s, want %s", tc.context, got, tc.command)
		}
	}
	if got := (links{"prod"}).query(url.Values{"context": {"edge"}, "q": {"x"}}).Encode(); got != "context=prod&q=x" {
		t.Errorf("the query is %s", got)
	}
}

// TestAddress checks that a page shows the site's only namespace, or else the namespace that its
// filter selects.
func TestAddress(t *testing.T) {
	for _, tc := range []struct {
		query, run  string
		shop, other bool
		flags       string
		ahead       string
	}{
		{"", "", true, true, "-A", "24h"},
		{"namespace=shop&for=7d", "", true, false, "-n", "7d"},
		{"for=9d", "shop", true, false, "-n", "24h"},
		{"namespace=other", "shop", false, false, "-n", "24h"},
	} {
		query, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		a := address{query, tc.run}
		if a.shows("shop") != tc.shop || a.shows("other") != tc.other || a.namespaceFlags()[0] != tc.flags || a.ahead().text != tc.ahead {
			t.Errorf("%q of %q shows shop %t, other %t, with %v for %s", tc.query, tc.run, a.shows("shop"), a.shows("other"), a.namespaceFlags(), a.ahead().text)
		}
	}
	a := address{query: url.Values{"q": {"web"}, "node": {"a"}}}
	if got := a.with("node", ""); got != "?q=web" {
		t.Errorf("without the node: %s", got)
	}
	if got := a.with("node", "b"); got != "?node=b&q=web" {
		t.Errorf("another node: %s", got)
	}
	if !a.matches("shop/web") || a.matches("shop/db") {
		t.Error("the filter is not applied")
	}
}

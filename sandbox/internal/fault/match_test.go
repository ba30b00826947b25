// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func request(verb, resource, namespace, name string) Request {
	resource, subresource, _ := strings.Cut(resource, "/")
	return Request{Verb: verb, GroupResource: schema.ParseGroupResource(resource), Subresource: subresource,
		Namespace: namespace, Name: name, UserAgent: "tidekeeper/v1 (linux/amd64)"}
}

func TestMatch(t *testing.T) {
	patch := request("patch", "deployments.apps", "shop", "web-1")
	status := request("update", "deployments.apps/status", "shop", "web-1")
	stream := request(VerbWatchList, "nodes", "", "")
	health := Request{Verb: "get", Path: "/readyz", UserAgent: "kube-probe/1.36"}
	for name, tc := range map[string]struct {
		match   Match
		request Request
		want    bool
	}{
		"anything":                   {Match{}, patch, true},
		"anything is for a resource": {Match{}, health, false},
		"verb":                       {Match{Verbs: []string{"patch"}}, patch, true},
		"other verb":                 {Match{Verbs: []string{"get", "update"}}, patch, false},
		"a patch is a write":         {Match{Verbs: []string{"write"}}, patch, true},
		"a patch is no read":         {Match{Verbs: []string{"read"}}, patch, false},
		"a streaming list watches":   {Match{Verbs: []string{"watch"}}, stream, true},
		"a streaming list by name":   {Match{Verbs: []string{"watchlist"}}, stream, true},
		"a watch is no list":         {Match{Verbs: []string{"watchlist"}}, request("watch", "nodes", "", ""), false},
		"not that verb":              {Match{Verbs: []string{"!patch"}}, patch, false},
		"resource of any group":      {Match{Resources: []string{"deployments"}}, patch, true},
		"resource of its group":      {Match{Resources: []string{"deployments.apps"}}, patch, true},
		"resource of the core group": {Match{Resources: []string{"deployments."}}, patch, false},
		"nodes of the core group":    {Match{Resources: []string{"nodes."}}, stream, true},
		"all of a group":             {Match{Resources: []string{"*.apps"}}, patch, true},
		"all of no group":            {Match{Resources: []string{"*."}}, patch, false},
		"main resource":              {Match{Resources: []string{"deployments"}}, status, false},
		"subresource":                {Match{Resources: []string{"deployments/status"}}, status, true},
		"a subresource of any":       {Match{Resources: []string{"*/status"}}, status, true},
		"all but some":               {Match{Resources: []string{"!leases", "!events"}}, patch, true},
		"some, but not these":        {Match{Resources: []string{"*.apps", "!deployments"}}, patch, false},
		"namespace":                  {Match{Namespaces: []string{"shop"}}, patch, true},
		"other namespace":            {Match{Namespaces: []string{"kube-*"}}, patch, false},
		"name":                       {Match{Names: []string{"web-*"}}, patch, true},
		"part of a name":             {Match{Names: []string{"web"}}, patch, false},
		"a point is a point":         {Match{Names: []string{"web.*"}}, patch, false},
		"agent across a slash":       {Match{UserAgents: []string{"tidekeeper*"}}, patch, true},
		"other agent":                {Match{UserAgents: []string{"!tidekeeper*"}}, patch, false},
		"all lists must fit":         {Match{Verbs: []string{"patch"}, Names: []string{"db"}}, patch, false},
		"path":                       {Match{Paths: []string{"/ready*"}}, health, true},
		"other path":                 {Match{Paths: []string{"/livez"}}, health, false},
		"a path is of no resource":   {Match{Paths: []string{"*"}}, patch, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.match.Matches(tc.request); got != tc.want {
				t.Errorf("%+v of %+v: %t, want %t", tc.match, tc.request, got, tc.want)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	added, bookmark := Event{Type: "ADDED", Namespace: "shop", Name: "web"}, Event{Type: "BOOKMARK"}
	initial := added
	initial.Initial = true
	for name, tc := range map[string]struct {
		events Events
		event  Event
		want   bool
	}{
		"any change":                {Events{}, added, true},
		"a bookmark is none":        {Events{}, bookmark, false},
		"the end is none":           {Events{}, Event{}, false},
		"bookmark":                  {Events{Types: []string{"BOOKMARK"}}, bookmark, true},
		"type":                      {Events{Types: []string{"DELETED"}}, added, false},
		"name":                      {Events{Names: []string{"w*"}}, added, true},
		"namespace":                 {Events{Namespaces: []string{"!shop"}}, added, false},
		"the list at the start":     {Events{}, initial, false},
		"that too, if asked for":    {Events{Initial: true}, initial, true},
		"and what comes after it":   {Events{Initial: true}, added, true},
		"not the list, by its name": {Events{Names: []string{"web"}}, initial, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.events.Matches(tc.event); got != tc.want {
				t.Errorf("%+v of %+v: %t, want %t", tc.events, tc.event, got, tc.want)
			}
		})
	}
}

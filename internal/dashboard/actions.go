// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Actions are what may be done, with --allow-actions.
type Actions interface {
	// Allowed reports whether the user may change a ScheduledRestart, by an access review.
	Allowed(ctx context.Context, namespace, name string) (bool, error)
	// RestartNow requests a restart, Suspend and Resume change the schedule. Each returns what
	// it did, in a sentence.
	RestartNow(ctx context.Context, namespace, name string) (string, error)
	Suspend(ctx context.Context, namespace, name string) (string, error)
	Resume(ctx context.Context, namespace, name string) (string, error)
}

// The names of the actions.
const (
	actNow     = "now"
	actSuspend = "suspend"
	actResume  = "resume"
)

// action is a button, with what its dialog asks.
type action struct{ Name, Text, Question, Key string }

// actionTimeout is how long the API server is waited for.
const actionTimeout = 10 * time.Second

// actionsFor returns what the user may do with a ScheduledRestart: nothing without
// --allow-actions, or without the right to patch it.
func (r *request) actionsFor(of *tidekeeperv1.ScheduledRestart) []action {
	actions := r.site.cluster.Actions
	if actions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, actionTimeout)
	defer cancel()
	if allowed, err := actions.Allowed(ctx, of.Namespace, of.Name); err != nil || !allowed {
		return nil
	}
	key, target := of.Namespace+"/"+of.Name, of.Spec.TargetRef.Kind+" "+of.Spec.TargetRef.Name
	where := fmt.Sprintf("ScheduledRestart %s in the namespace %s, context %s", of.Name, of.Namespace, r.site.about.Context)
	change := action{actSuspend, "Suspend", "No tick is started until it is resumed: " + where, key}
	if of.Spec.Suspend {
		change = action{actResume, "Resume", "The schedule goes on: " + where, key}
	}
	return []action{{actNow, "Restart now", "All pods of " + target + " are replaced, as the strategy of the workload says: " + where, key}, change}
}

// serveAction does what a dialog was confirmed for.
func (s *Site) serveAction(w http.ResponseWriter, r *http.Request) {
	if s.cluster.Actions == nil {
		http.Error(w, "this page is read-only: start it with --allow-actions", http.StatusForbidden)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send application/json", http.StatusUnsupportedMediaType)
		return
	}
	var asked struct{ Action, Namespace, Name string }
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.Namespace == "" || asked.Name == "" {
		http.Error(w, "send action, namespace and name", http.StatusBadRequest)
		return
	}
	do := map[string]func(context.Context, string, string) (string, error){
		actNow: s.cluster.Actions.RestartNow, actSuspend: s.cluster.Actions.Suspend, actResume: s.cluster.Actions.Resume,
	}[asked.Action]
	if do == nil {
		http.Error(w, "there is no such action", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	if allowed, err := s.cluster.Actions.Allowed(ctx, asked.Namespace, asked.Name); err != nil || !allowed {
		http.Error(w, "you may not change this ScheduledRestart", http.StatusForbidden)
		return
	}
	done, err := do(ctx, asked.Namespace, asked.Name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer(w, map[string]string{"done": done}, nil)
}

// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Right is the permission to use a verb on one of Tidekeeper's objects, as checked by a
// SelfSubjectAccessReview. Namespace is "" for objects without a namespace. Name is "" for the verb
// create.
type Right struct{ Verb, Resource, Namespace, Name string }

// Actions performs the actions that --allow-actions enables. Each action returns its outcome as a
// sentence.
type Actions interface {
	// Allowed reports whether an access review grants the user the given permission.
	Allowed(ctx context.Context, right Right) (bool, error)
	// RestartNow requests a restart of the workload of the named ScheduledRestart. Suspend stops
	// the schedule of the named ScheduledRestart, and Resume continues the schedule.
	RestartNow(ctx context.Context, namespace, name string) (string, error)
	Suspend(ctx context.Context, namespace, name string) (string, error)
	Resume(ctx context.Context, namespace, name string) (string, error)
	// Freeze creates a Freeze for the given namespaces; an empty list means all namespaces. The end
	// of the Freeze is the parameter until, which is either a time or a duration from now.
	Freeze(ctx context.Context, namespaces []string, until, reason string) (string, error)
	// Thaw deletes the Freeze with this name and UID.
	Thaw(ctx context.Context, name string, uid types.UID) (string, error)
}

// Names of the actions that a confirmation dialog can request.
const (
	actNow     = "now"
	actSuspend = "suspend"
	actResume  = "resume"
	actFreeze  = "freeze"
	actThaw    = "thaw"
)

// action is a button with a confirmation dialog. When the user confirms, the browser sends the JSON
// in Object.
type action struct {
	Name, Text, Question string
	// Ask is the heading of the confirmation dialog, such as "Freeze restarts?".
	Ask string
	// Object is the action and the object that it changes, as JSON.
	Object string
	// Asks is set if the dialog has input fields for a Freeze. Namespaces is the initial value of
	// the input field for namespaces.
	Asks       bool
	Namespaces string
}

// asked is the body of the HTTP request that the browser sends when the user confirms an action.
type asked struct {
	Action    string    `json:"action"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	// Namespaces lists the namespaces of the Freeze to create, separated by commas.
	Namespaces string `json:"namespaces,omitempty"`
	Until      string `json:"until,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// actionTimeout limits the time for performing an action in the cluster.
const actionTimeout = 10 * time.Second

// rightsAge is the time for which the result of an access review is reused to decide whether to
// show a button. Before an action is performed, its permission is always reviewed again.
const rightsAge = 15 * time.Second

// objectText encodes an action for the request that the confirmation dialog sends.
func objectText(of asked) string {
	text, _ := json.Marshal(of) // Marshalling strings cannot fail.
	return string(text)
}

func restartRight(namespace, name string) Right {
	return Right{"patch", kindRestarts, namespace, name}
}

// buttons determines the action buttons on a page, depending on the user's permissions.
type buttons struct {
	context   string
	namespace string // the namespace that the site is limited to; "" for all
	// freezable is set if the cluster serves Freezes.
	freezable bool
	may       func(Right) bool
}

// restart returns the buttons for a ScheduledRestart. There are none without --allow-actions, or if
// the user is not allowed to patch the object.
func (b *buttons) restart(of *tidekeeperv1.ScheduledRestart) []action {
	if !b.may(restartRight(of.Namespace, of.Name)) {
		return nil
	}
	target := fmt.Sprintf("%s %s/%s", of.Spec.TargetRef.Kind, of.Namespace, of.Spec.TargetRef.Name)
	where := fmt.Sprintf(" (ScheduledRestart %s, context %s)", of.Name, b.context)
	button := func(name, text, ask, question string) action {
		return action{Name: name, Text: text, Ask: ask, Question: question + where, Object: objectText(asked{Action: name, Namespace: of.Namespace, Name: of.Name})}
	}
	change := button(actSuspend, "Suspend", "Suspend the restarts of "+target+"?", "None is started until they are resumed.")
	if of.Spec.Suspend {
		change = button(actResume, "Resume", "Resume the restarts of "+target+"?", "The schedule goes on.")
	}
	return []action{button(actNow, "Restart now", "Restart "+target+" now?", replacedBy(of)), change}
}

// replacedBy describes how a restart replaces the workload's pods.
func replacedBy(of *tidekeeperv1.ScheduledRestart) string {
	if decision.Evicts(of) {
		return "All its pods are evicted, as their disruption budgets allow."
	}
	return "All its pods are replaced, by its own update strategy."
}

// freeze returns the button that creates a Freeze, unless the user is not allowed to create
// Freezes.
func (b *buttons) freeze() []action {
	if !b.freezable || !b.may(Right{Verb: "create", Resource: kindFreezes}) {
		return nil
	}
	return []action{{
		Name: actFreeze, Text: "Freeze", Asks: true, Namespaces: b.namespace, Object: objectText(asked{Action: actFreeze}),
		Ask:      "Freeze restarts?",
		Question: "Until it ends, no restart starts in the namespaces below, and no node is drained for maintenance or gets a NoExecute taint anywhere. (context " + b.context + ")",
	}}
}

// thaw returns the button that deletes the given Freeze, unless the user is not allowed to delete
// it.
func (b *buttons) thaw(f *view.Freeze) []action {
	if !b.may(Right{Verb: "delete", Resource: kindFreezes, Name: f.Name}) {
		return nil
	}
	return []action{{
		Name: actThaw, Text: "Lift", Object: objectText(asked{Action: actThaw, Name: f.Name, UID: types.UID(f.UID)}),
		Ask:      "Lift the Freeze " + f.Name + "?",
		Question: "The restarts that it holds back and that are not missed yet start now, as the budget allows. (" + f.Where + ": " + f.Reason + "; context " + b.context + ")",
	}}
}

// do returns the function that performs the action, and the permission that the user needs for the
// action. It returns an error if the action is unknown, or if a required field of a is empty.
func (a *asked) do(actions Actions) (Right, func(context.Context) (string, error), error) {
	restarts := map[string]func(context.Context, string, string) (string, error){
		actNow: actions.RestartNow, actSuspend: actions.Suspend, actResume: actions.Resume,
	}
	switch do := restarts[a.Action]; {
	case do != nil && (a.Namespace == "" || a.Name == ""):
		return Right{}, nil, errors.New("send action, namespace and name")
	case do != nil:
		return restartRight(a.Namespace, a.Name), func(ctx context.Context) (string, error) { return do(ctx, a.Namespace, a.Name) }, nil
	case a.Action == actThaw && (a.Name == "" || a.UID == ""):
		return Right{}, nil, errors.New("send action, name and uid")
	case a.Action == actThaw:
		return Right{Verb: "delete", Resource: kindFreezes, Name: a.Name}, func(ctx context.Context) (string, error) { return actions.Thaw(ctx, a.Name, a.UID) }, nil
	case a.Action == actFreeze:
		var namespaces []string
		if text := strings.ReplaceAll(a.Namespaces, " ", ""); text != "" {
			namespaces = strings.Split(text, ",")
		}
		return Right{Verb: "create", Resource: kindFreezes}, func(ctx context.Context) (string, error) {
			return actions.Freeze(ctx, namespaces, strings.TrimSpace(a.Until), strings.TrimSpace(a.Reason))
		}, nil
	default:
		return Right{}, nil, errors.New("there is no such action")
	}
}

// serveAction handles the HTTP request that the browser sends when the user confirms an action. It
// checks the user's permission, and then performs the action.
func serveAction(actions Actions, w http.ResponseWriter, r *http.Request) {
	if actions == nil {
		http.Error(w, "this page is read-only: start it with --allow-actions", http.StatusForbidden)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send application/json", http.StatusUnsupportedMediaType)
		return
	}
	var what asked
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&what); err != nil {
		http.Error(w, "send an action as one JSON object", http.StatusBadRequest)
		return
	}
	right, do, err := what.do(actions)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	if allowed, err := actions.Allowed(ctx, right); err != nil || !allowed {
		http.Error(w, "you may not "+right.Verb+" this "+strings.TrimSuffix(right.Resource, "s"), http.StatusForbidden)
		return
	}
	done, err := do(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, map[string]string{"done": done}, nil)
}

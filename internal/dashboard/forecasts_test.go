// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// slowForecasts replaces the computation of a site's forecasts. A computation blocks until the test
// provides its result, or until its time limit.
type slowForecasts struct {
	began chan context.Context
	goOn  chan forecast.Forecast
	now   atomic.Pointer[time.Time]
	// waited is the time for which the computation had no CPU.
	waited time.Duration
}

func slowSite(t *testing.T) (*Site, *slowForecasts) {
	t.Helper()
	s := newTestSite(t, nil, largeWorld()...)
	slow := &slowForecasts{began: make(chan context.Context, 10), goOn: make(chan forecast.Forecast)}
	start := noon
	slow.now.Store(&start)
	clock := func() time.Time { return *slow.now.Load() }
	m := memberOf(s)
	m.world.now = clock
	f := m.models.forecasts
	f.patience, f.now = 0, clock
	f.processorTime = func() time.Duration { return clock().Sub(start) - slow.waited }
	f.run = func(ctx context.Context, in forecast.Input) forecast.Forecast {
		slow.began <- ctx
		select {
		case made := <-slow.goOn:
			made.From, made.Until = in.Now, in.Until
			return made
		case <-ctx.Done():
			return forecast.Forecast{}
		}
	}
	return s, slow
}

func (f *slowForecasts) pass(d time.Duration) {
	later := f.now.Load().Add(d)
	f.now.Store(&later)
}

func html(t *testing.T, s *Site, path string) string {
	t.Helper()
	e, err := s.render(t.Context(), path, nil, patient)
	if err != nil {
		t.Fatal(err)
	}
	return e.HTML
}

// TestPagesDoNotWaitForAForecast checks that all pages are served while a forecast is being
// computed. Pages with a forecast show the previous forecast and its age.
func TestPagesDoNotWaitForAForecast(t *testing.T) {
	s, slow := slowSite(t)
	for _, path := range []string{"/restarts", "/", "/capacity", "/pods", "/pools/worker"} {
		shown := html(t, s, path)
		if says := strings.Contains(shown, "The forecast is being made."); says != (path == "/restarts" || path == "/") {
			t.Errorf("%s says that the forecast is being made: %v", path, says)
		}
		if strings.Contains(shown, "No restart will start.") || strings.Contains(shown, "Nothing will be missed.") {
			t.Errorf("%s says what is not known:\n%s", path, shown)
		}
	}
	<-slow.began
	if n := len(slow.began); n > 0 {
		t.Errorf("%d more forecasts are made at the same time", n)
	}
	// Computing the forecast took 5 s. The pages that stopped waiting for it are built again.
	slow.pass(5 * time.Second)
	changed := s.pages.nextChange()
	slow.goOn <- forecast.Forecast{Summary: forecast.Summary{Started: 7}}
	<-changed
	if shown := html(t, s, "/restarts"); !strings.Contains(shown, "7 restarts will start") || strings.Contains(shown, "old-forecast") {
		t.Errorf("the forecast is not there, or said to be old:\n%.3000s", shown)
	}
	// The forecast is outdated by now, but the pause of nine times its computing time has not
	// ended.
	slow.pass(44 * time.Second)
	if shown := html(t, s, "/restarts"); !strings.Contains(shown, "7 restarts will start") || !strings.Contains(shown, "The forecast is of 12:00, 44s ago: a new one is being made.") {
		t.Errorf("an old forecast is not said to be one:\n%.3000s", shown)
	}
	if n := len(slow.began); n > 0 {
		t.Error("forecasts are made for more than a tenth of the time")
	}
	slow.pass(time.Second)
	html(t, s, "/restarts")
	<-slow.began
	slow.goOn <- forecast.Forecast{}
}

// TestForecastOnABusyMachine checks that the pause after a forecast is nine times the CPU time that
// it took, and not nine times as long as it waited for a busy machine.
func TestForecastOnABusyMachine(t *testing.T) {
	s, slow := slowSite(t)
	html(t, s, "/restarts")
	<-slow.began
	slow.pass(30 * time.Second)
	slow.waited = 28 * time.Second
	changed := s.pages.nextChange()
	slow.goOn <- forecast.Forecast{}
	<-changed
	slow.pass(forecastAge) // longer than the pause of 18 s
	html(t, s, "/restarts")
	select {
	case <-slow.began:
		slow.goOn <- forecast.Forecast{}
	case <-time.After(time.Minute):
		t.Error("no new forecast is made")
	}
}

// TestAForecastThatNeverEnds checks that a forecast computation is aborted at its time limit, and
// that the pages report the problem.
func TestAForecastThatNeverEnds(t *testing.T) {
	s, slow := slowSite(t)
	html(t, s, "/restarts")
	ctx := <-slow.began
	if _, bounded := ctx.Deadline(); !bounded {
		t.Fatal("it may take forever")
	}
	f := memberOf(s).models.forecasts
	f.mu.Lock()
	f.longest = 0
	f.mu.Unlock()
	changed := s.pages.nextChange()
	slow.goOn <- forecast.Forecast{}
	<-changed
	slow.pass(time.Minute)
	html(t, s, "/restarts")
	<-slow.began
	const want = "The forecast is of 12:00, 60s ago: it takes longer than 0s: look less far ahead, or ask kubectl tide restarts forecast."
	for {
		changed := s.pages.nextChange()
		if strings.Contains(html(t, s, "/restarts"), want) {
			break
		}
		<-changed
	}
}

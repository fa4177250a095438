package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	cato "github.com/catonetworks/cato-go-sdk"
	models "github.com/catonetworks/cato-go-sdk/models"
)

const account = "4711"

// A walker remembers the first thing that was not as it should be; everything after that is skipped.
type walker struct {
	client *cato.Client
	ctx    context.Context
	step   string
	err    error
}

func walk(url string) error {
	client, err := cato.New(url, "a-key", account, http.DefaultClient, nil)
	if err != nil {
		return err
	}
	w := &walker{client: client, ctx: context.Background()}
	first := w.ipsecSite("berlin")
	second := w.ipsecSite("berlin")
	w.equal("a create that is repeated makes a second site", first == second, false)
	w.socketSite()
	w.bgpPeer(first)
	w.staticHost(first)
	for _, site := range []string{first, second} {
		w.at("remove the site")
		do(w, func() (*cato.SiteRemoveSite, error) { return w.client.SiteRemoveSite(w.ctx, site, account) })
	}
	w.at("nothing is left")
	w.equal("sites", len(w.lookup(models.EntityTypeSite, nil, nil)), 0)
	w.at("remove it again")
	if w.err == nil {
		_, err := w.client.SiteRemoveSite(w.ctx, first, account)
		w.equal("an error names the site", err != nil && strings.Contains(err.Error(), first), true)
	}
	return w.err
}

func (w *walker) at(step string) { w.step = step }

func (w *walker) equal(what string, got, want any) {
	if w.err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
		w.err = fmt.Errorf("%s: %s: got %v, want %v", w.step, what, got, want)
	}
}

func do[T any](w *walker, call func() (*T, error)) *T {
	if w.err != nil {
		return new(T)
	}
	answer, err := call()
	if err != nil {
		w.err = fmt.Errorf("%s: %w", w.step, err)
		return new(T)
	}
	return answer
}

// Pointers into an answer are long; what is compared is its JSON.
func (w *walker) shows(what string, answer any, wanted ...string) {
	text, _ := json.Marshal(answer)
	for _, want := range wanted {
		if w.err == nil && !strings.Contains(string(text), want) {
			w.err = fmt.Errorf("%s: %s: no %s in %s", w.step, what, want, text)
		}
	}
}

func ptr[T any](value T) *T { return &value }

func (w *walker) lookup(kind models.EntityType, parent *string, ids []string) []*cato.EntityLookup_EntityLookup_Items {
	var entity *models.EntityInput
	if parent != nil {
		entity = &models.EntityInput{Type: models.EntityTypeSite, ID: *parent}
	}
	answer := do(w, func() (*cato.EntityLookup, error) {
		return w.client.EntityLookup(w.ctx, account, kind, nil, nil, entity, nil, ids, nil, nil, nil)
	})
	return answer.EntityLookup.Items
}

func (w *walker) ipsecSite(name string) string {
	w.at("add an ipsec site")
	location := &models.AddSiteLocationInput{
		CountryCode: "US", StateCode: ptr("US-NY"), City: ptr("New York"), Timezone: "America/New_York",
	}
	added := do(w, func() (*cato.SiteAddIpsecIkeV2Site, error) {
		return w.client.SiteAddIpsecIkeV2Site(w.ctx, models.AddIpsecIkeV2SiteInput{
			Name: name, Description: ptr("a branch"), NativeNetworkRange: "10.1.0.0/24", SiteType: models.SiteTypeBranch,
			SiteLocation: location,
		}, account)
	})
	id := added.GetSite().GetAddIpsecIkeV2Site().GetSiteID()
	w.at("set its IPsec details")
	do(w, func() (*cato.SiteUpdateIpsecIkeV2SiteGeneralDetails, error) {
		return w.client.SiteUpdateIpsecIkeV2SiteGeneralDetails(w.ctx, id, models.UpdateIpsecIkeV2SiteGeneralDetailsInput{
			ConnectionMode:     ptr(models.ConnectionModeBidirectional),
			IdentificationType: ptr(models.IdentificationTypeIPV4),
			NetworkRanges:      []*string{ptr("10.2.0.0/24")},
		}, account)
	})
	w.at("add its tunnels")
	tunnel := func(address string) *models.AddIpsecIkeV2TunnelInput {
		return &models.AddIpsecIkeV2TunnelInput{
			Psk: "a-shared-key", PublicSiteIP: &address, PrivateCatoIP: ptr("169.254.1.1"),
			LastMileBw: &models.LastMileBwInput{Downstream: ptr(int64(100)), Upstream: ptr(int64(50))},
		}
	}
	tunnels := do(w, func() (*cato.SiteAddIpsecIkeV2SiteTunnels, error) {
		return w.client.SiteAddIpsecIkeV2SiteTunnels(w.ctx, id, models.AddIpsecIkeV2SiteTunnelsInput{
			Primary: &models.AddIpsecIkeV2TunnelsInput{
				DestinationType: ptr(models.DestinationTypeIPv4),
				Tunnels:         []*models.AddIpsecIkeV2TunnelInput{tunnel("192.0.2.1"), tunnel("192.0.2.2")},
			},
			Secondary: &models.AddIpsecIkeV2TunnelsInput{
				Tunnels: []*models.AddIpsecIkeV2TunnelInput{tunnel("192.0.2.3")},
			},
		}, account)
	})
	w.shows("tunnels have ids", tunnels, `"PRIMARY1"`, `"PRIMARY2"`, `"SECONDARY1"`)
	w.at("change a tunnel")
	do(w, func() (*cato.SiteUpdateIpsecIkeV2SiteTunnels, error) {
		return w.client.SiteUpdateIpsecIkeV2SiteTunnels(w.ctx, id, models.UpdateIpsecIkeV2SiteTunnelsInput{
			Primary: &models.UpdateIpsecIkeV2TunnelsInput{Tunnels: []*models.UpdateIpsecIkeV2TunnelInput{
				{TunnelID: models.IPSecV2InterfaceIDPrimary2, PublicSiteIP: ptr("192.0.2.9")},
			}},
		}, account)
	})
	w.at("read the site as the provider does")
	sites := w.lookup(models.EntityTypeSite, nil, []string{id})
	w.equal("sites", len(sites), 1)
	w.shows("the site", sites, `"type":"BRANCH"`, `"description":"a branch"`)
	ranges := w.lookup(models.EntityTypeSiteRange, &id, nil)
	w.shows("its range", ranges, `\\ Native Range`, `"subnet":"10.1.0.0/24"`)
	w.shows("its interface", w.lookup(models.EntityTypeNetworkInterface, &id, nil), `"siteId":"`+id+`"`)
	snapshot := do(w, func() (*cato.AccountSnapshot, error) {
		return w.client.AccountSnapshot(w.ctx, []string{id}, nil, ptr(account))
	})
	w.shows("its snapshot", snapshot, `"countryCode":"US"`, `"cityName":"New York"`, `"countryStateName":"State US-NY"`)
	w.at("rename the site")
	do(w, func() (*cato.SiteUpdateSiteGeneralDetails, error) {
		return w.client.SiteUpdateSiteGeneralDetails(w.ctx, id, models.UpdateSiteGeneralDetailsInput{
			Name: ptr(name + "-2"), SiteLocation: &models.UpdateSiteLocationInput{CityName: ptr("Albany")},
		}, account)
	})
	details := do(w, func() (*cato.SiteGeneralDetails, error) {
		reference := models.SiteRefInput{By: models.ObjectRefByID, Input: id}
		return w.client.SiteGeneralDetails(w.ctx, reference, account)
	})
	w.shows("its details", details, `"`+name+`-2"`, `"Albany"`, `"America/New_York"`)
	return id
}

func (w *walker) socketSite() {
	w.at("add a socket site")
	added := do(w, func() (*cato.SiteAddSocketSite, error) {
		return w.client.SiteAddSocketSite(w.ctx, models.AddSocketSiteInput{
			Name: "munich", ConnectionType: models.SiteConnectionTypeEnumSocketX1700, NativeNetworkRange: "10.5.0.0/24",
			SiteType:     models.SiteTypeBranch,
			SiteLocation: &models.AddSiteLocationInput{CountryCode: "DE", Timezone: "Europe/Berlin"},
		}, account)
	})
	id := added.GetSite().GetAddSocketSite().GetSiteID()
	w.at("change its interface")
	do(w, func() (*cato.SiteUpdateSocketInterface, error) {
		return w.client.SiteUpdateSocketInterface(w.ctx, id, models.SocketInterfaceIDEnumInt3, models.UpdateSocketInterfaceInput{
			DestType: models.SocketInterfaceDestTypeLan, Name: ptr("office"),
			Lan: &models.SocketInterfaceLanInput{LocalIP: "10.6.0.1", Subnet: "10.6.0.0/24"},
		}, account)
	})
	interfaces := w.lookup(models.EntityTypeNetworkInterface, &id, nil)
	w.shows("its interface", interfaces, `"interfaceName":"office"`, `"subnet":"10.6.0.0/24"`, `"interfaceId":"INT_3"`)
	if w.err != nil {
		return
	}
	w.at("add a network range")
	added2 := do(w, func() (*cato.SiteAddNetworkRange, error) {
		return w.client.SiteAddNetworkRange(w.ctx, interfaces[0].Entity.ID, models.AddNetworkRangeInput{
			Name: "cameras", RangeType: models.SubnetTypeVlan, Subnet: "10.7.0.0/24", Vlan: ptr(int64(70)), LocalIP: ptr("10.7.0.1"),
			DhcpSettings: &models.NetworkDhcpSettingsInput{DhcpType: models.DhcpTypeDhcpDisabled},
		}, account)
	})
	rangeID := added2.GetSite().GetAddNetworkRange().GetNetworkRangeID()
	do(w, func() (*cato.SiteUpdateNetworkRange, error) {
		change := models.UpdateNetworkRangeInput{Name: ptr("sensors")}
		return w.client.SiteUpdateNetworkRange(w.ctx, rangeID, change, account)
	})
	one := do(w, func() (*cato.NetworkRange, error) { return w.client.NetworkRange(w.ctx, account, rangeID) })
	w.shows("the range", one, `"sensors"`, `"vlan":70`, `"VLAN"`)
	list := do(w, func() (*cato.NetworkRangeList, error) {
		site := &models.SiteRefInput{By: models.ObjectRefByID, Input: id}
		return w.client.NetworkRangeList(w.ctx, account, models.NetworkRangeListInput{Site: site})
	})
	w.shows("all ranges", list, `"sensors"`, `"Native Range"`, `"total":2`)
	do(w, func() (*cato.SiteRemoveNetworkRange, error) { return w.client.SiteRemoveNetworkRange(w.ctx, rangeID, account) })
	if w.err == nil {
		_, err := w.client.NetworkRange(w.ctx, account, rangeID)
		w.equal("a missing range is an error", err != nil && strings.Contains(err.Error(), "Invalid network range id: "), true)
	}
	w.at("remove the socket site")
	do(w, func() (*cato.SiteRemoveSite, error) { return w.client.SiteRemoveSite(w.ctx, id, account) })
}

func (w *walker) bgpPeer(site string) {
	w.at("add a BGP peer")
	added := do(w, func() (*cato.SiteAddBgpPeer, error) {
		return w.client.SiteAddBgpPeer(w.ctx, models.AddBgpPeerInput{
			Site: &models.SiteRefInput{By: models.ObjectRefByID, Input: site}, Name: "edge", PeerAsn: "65001", CatoAsn: "65000",
			PeerIP: "169.254.1.2", DefaultAction: models.BgpDefaultActionAccept, AdvertiseDefaultRoute: true, Metric: 50,
			HoldTime: 60, KeepaliveInterval: 20,
			DefaultActionExclusion: []*models.BgpFilterRuleInput{}, DefaultRouteCommunities: []*models.BgpCommunityInput{},
			SummaryRoute: []*models.BgpSummaryRouteInput{{Route: "10.0.0.0/8", Community: []*models.BgpCommunityInput{{From: "1", To: "2"}}}},
		}, account)
	})
	peer := added.GetSite().GetAddBgpPeer().GetBgpPeer()
	w.shows("the peer", peer, `"edge"`, `"10.0.0.0/8"`, `"ACCEPT"`, site)
	id := peer.GetID()
	w.at("change the BGP peer")
	do(w, func() (*cato.SiteUpdateBgpPeer, error) {
		return w.client.SiteUpdateBgpPeer(w.ctx, models.UpdateBgpPeerInput{ID: id, Metric: ptr(int64(70))}, account)
	})
	read := func() *cato.Site {
		return do(w, func() (*cato.Site, error) {
			return w.client.SiteBgpPeer(w.ctx, models.BgpPeerRefInput{By: models.ObjectRefByID, Input: id}, account)
		})
	}
	w.shows("the changed peer", read(), `"metric":70`, `"edge"`)
	list := do(w, func() (*cato.Site, error) {
		reference := &models.SiteRefInput{By: models.ObjectRefByID, Input: site}
		return w.client.SiteBgpPeerList(w.ctx, models.BgpPeerListInput{Site: reference}, account)
	})
	w.shows("all peers", list, `"edge"`)
	w.at("remove the BGP peer")
	do(w, func() (*cato.SiteRemoveBgpPeer, error) {
		return w.client.SiteRemoveBgpPeer(w.ctx, models.RemoveBgpPeerInput{ID: id}, account)
	})
	w.equal("a missing peer is null", read().GetSite().GetBgpPeer() == nil, true)
}

func (w *walker) staticHost(site string) {
	w.at("add a static host")
	added := do(w, func() (*cato.SiteAddStaticHost, error) {
		host := models.AddStaticHostInput{Name: "printer", IP: "10.1.0.9", MacAddress: ptr("00:00:5e:00:53:01")}
		return w.client.SiteAddStaticHost(w.ctx, site, host, account)
	})
	id := added.GetSite().GetAddStaticHost().GetHostID()
	do(w, func() (*cato.SiteUpdateStaticHost, error) {
		return w.client.SiteUpdateStaticHost(w.ctx, id, models.UpdateStaticHostInput{IP: ptr("10.1.0.10")}, account)
	})
	w.shows("the host", w.lookup(models.EntityTypeHost, nil, []string{id}), `"printer"`, `"ip":"10.1.0.10"`)
	do(w, func() (*cato.SiteRemoveStaticHost, error) { return w.client.SiteRemoveStaticHost(w.ctx, id, account) })
	w.equal("hosts", len(w.lookup(models.EntityTypeHost, nil, []string{id})), 0)
}

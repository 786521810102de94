//! What can be relied on, and which test shows it.
//!
//! A test is named by the package, the file in it (tests of units lie beside the code in `src`, the others in `tests`)
//! and the function. `cargo xtask tidy` fails when one that is named here is gone. To run one:
//! `cargo test -p coeval-time accumulated_step`; the package of `integration-tests` is `coeval-integration-tests`.
//!
//! # Merging
//! Every replica shows what replaying all batches in the order of their stamps would show, whatever the order,
//! repetition and grouping in which they arrived:
//! `coeval-merge::oracle::replicas_show_what_replay_shows`,
//! `coeval-store::converge::all_replicas_show_what_replaying_in_stamp_order_shows`,
//! `coeval-simnet::seeds::two_real_stores_converge_whatever_is_done_to_their_link`,
//! `coeval-simnet::seeds::meshes_of_every_topology_hold_their_invariants`.
//!
//! Faults that this rules out:
//! * **A write that comes late, below a newer removal, shows again.** It stays hidden, in every order of arrival:
//!   `coeval-merge::cases::late_put_under_a_newer_clear_stays_hidden`,
//!   `coeval-store::cases::late_put_under_a_newer_clear_stays_hidden`.
//! * **An entity deleted while another peer streams to it comes back.** Never, on any peer; the streamer's writes are
//!   refused as soon as it has heard: `coeval-merge::cases::an_entity_deleted_while_flying_never_comes_back`,
//!   `coeval-store::cases::an_entity_deleted_while_flying_never_comes_back`,
//!   `coeval-store::stress::handles_held_while_their_entities_are_deleted_never_come_back`,
//!   `coeval-simnet::cases::an_entity_deleted_while_it_is_streamed_never_comes_back`,
//!   `integration-tests::processes::an_entity_deleted_while_it_flies_never_comes_back`.
//! * **Two writers of two fields overwrite each other.** Both fields survive, also at one instant:
//!   `coeval-merge::cases::two_fields_of_two_writers_both_survive`,
//!   `coeval-simnet::cases::two_fields_written_by_two_at_one_instant_both_survive`,
//!   `integration-tests::sessions::two_fields_by_two_writers_both_survive`.
//! * **A batch forgets the order in which it was built.** What is later in it wins:
//!   `coeval-merge::cases::program_order_inside_a_batch_is_kept`,
//!   `coeval-store::cases::program_order_counts_inside_a_batch`.
//! * **A map whose last child is removed turns into what was there before.** It is an empty map, also where the child was
//!   never held: `coeval-merge::cases::a_map_stays_a_map_after_its_last_child_is_removed`,
//!   `coeval-merge::cases::a_map_stays_a_map_where_the_removed_child_was_never_held`,
//!   `coeval-store::cases::a_map_stays_a_map_when_its_last_child_goes`.
//! * **Replicas that show the same count as different.** What is hidden does not count in the digest, and nothing is sent
//!   to mend it: `coeval-merge::cases::a_leaf_hidden_under_a_newer_clear_does_not_count`,
//!   `coeval-store::cases::hidden_is_equal_to_never_received`,
//!   `coeval-sync::repair::hidden_is_equal_and_no_repair_flows`,
//!   `coeval-simnet::cases::a_leaf_hidden_by_a_clear_is_no_difference_and_nothing_flows`.
//! * **A batch is seen in part.** Snapshots, watches and other peers see all of it or none:
//!   `coeval-store::stress::snapshots_and_receivers_see_whole_batches`,
//!   `coeval-sync::links::batches_arrive_whole_or_not_at_all`,
//!   `coeval-sync::links::a_snapshot_that_breaks_off_leaves_no_half_of_a_batch`,
//!   `coeval-sync::units::a_relay_passes_on_also_what_was_superseded_at_it`,
//!   `coeval-store::units::a_batch_of_which_a_part_is_refused_is_refused_whole`,
//!   `coeval-store::units::a_batch_overtaken_before_it_was_sent_is_known_to_be`,
//!   `integration-tests::batches::a_batch_is_never_seen_torn`.
//! * **A value changes on its way.** Values survive by their bits, payloads of NaN and the sign of zero included:
//!   `coeval-value::values::nan_payloads_and_negative_zero_survive_and_differ`,
//!   `coeval-wire::body::a_value_comes_back_by_bits`.
//! * **Deletions are forgotten for want of room.** At the limit creation is refused, deletion never:
//!   `coeval-merge::cases::at_the_limit_creation_is_refused_and_deletion_is_not`,
//!   `coeval-store::world::at_the_limit_of_tombstones_creation_is_refused_and_deletion_is_not`.
//! * **One name, two entities, and a look-up picks one.** It is an error that lists both, and a notice is given once:
//!   `coeval-store::world::a_name_clash_is_told_once_and_look_ups_list_the_ids`,
//!   `integration-tests::misuse::one_name_for_two_is_an_error_that_lists_both`.
//!
//! # Stamps and wrong clocks
//! * **What a thread writes after reading loses to what it read.** It wins, however far ahead the other's clock is:
//!   `coeval-store::cases::who_reads_and_then_writes_wins`,
//!   `coeval-simnet::cases::who_writes_after_reading_wins_over_a_clock_that_is_ahead`,
//!   `integration-tests::sessions::a_write_after_a_read_wins_everywhere`.
//! * **A clock that ran ahead holds a key until the others reach it.** Later writes win at once:
//!   `coeval-store::cases::a_clock_that_ran_ahead_holds_no_key`,
//!   `coeval-simnet::cases::a_clock_ten_minutes_ahead_holds_no_key`.
//! * **After a restart with the clock set back, writes lose to the peer's own past.** They win:
//!   `coeval-time::session_time::restart_with_the_clock_set_back_wins_over_its_own_past`,
//!   `integration-tests::journal::after_a_restart_with_the_clock_set_back_the_second_write_wins_everywhere`.
//! * **A stamp far ahead spreads.** It waits outside the world until it is due, and its author hears of it:
//!   `coeval-sync::links::stamp_too_far_ahead_waits_outside_until_due`.
//! * **A joiner with a wrong OS clock writes in the past or the future.** It measures its offset before its first write:
//!   `coeval-time::session_time::joiner_with_a_wrong_os_clock_adopts_the_sessions_time_before_it_writes`,
//!   `integration-tests::processes::a_wrong_clock_does_not_keep_a_program_out`.
//! * **Session wall time goes back.** Never; a large error is stepped over forward, and told:
//!   `coeval-time::session_time::never_backward_and_within_the_uncertainty`,
//!   `coeval::engine::a_step_of_session_wall_time_is_told_and_a_slew_is_not`.
//! * **A cloned machine writes under the same identity unnoticed.** It goes on under a new name, told once:
//!   `coeval-store::world::a_stamp_of_its_own_that_it_never_issued_shows_a_fork`,
//!   `coeval-store::world::own_stamps_that_come_back_late_are_no_fork`,
//!   `coeval-sync::fork::of_two_programs_under_one_name_one_takes_another_and_all_converge`,
//!   `coeval::options::who_finds_a_clone_of_itself_goes_on_under_a_new_name`.
//!
//! # Sim time
//! The same edits give the same sim time on every peer, to the nanosecond:
//! `coeval-time::fold_oracle::fold_is_the_oracle_nanosecond_by_nanosecond`,
//! `integration-tests::clock::sim_time_is_equal_to_the_nanosecond_at_every_instant`.
//!
//! Faults that this rules out:
//! * **A step that is added up loses a firing.** Every 0.1 s until 5.0 s is 50 firings, the last at 5 s exactly:
//!   `coeval-time::timers::accumulated_step_does_not_lose_a_firing`,
//!   `coeval-time::timers::firings_are_the_crossings`.
//! * **A clock that is read twice shows stairs.** 100,000 readings per second rise strictly:
//!   `coeval-time::clock_cases::clock_read_twice_never_stands_on_a_stair`,
//!   `integration-tests::clock::a_clock_read_often_climbs_without_stairs`.
//! * **A seek while paused starts the clock.** It reads the new time exactly, and is paused:
//!   `coeval-time::clock_cases::seek_while_paused_stays_paused`,
//!   `integration-tests::clock::a_jump_while_paused_stays_paused`.
//! * **A joiner brings its default rate.** Joining makes no edit:
//!   `coeval-time::clock_cases::joiner_brings_no_default`,
//!   `integration-tests::clock::joining_makes_no_edit_and_leaves_the_rate`.
//! * **There and back ends somewhere else.** It is the identical instant, millennia away too:
//!   `coeval-time::clock_cases::there_and_back_is_the_identical_instant`,
//!   `integration-tests::clock::scheduled_edits_switch_without_a_step`.
//! * **An answer to an edit is ordered before it.** Who has seen an edit is ordered after it, whatever its clock says:
//!   `coeval-time::clock_cases::answer_to_what_was_seen_is_ordered_after_it`,
//!   `integration-tests::clock::an_answer_to_what_was_seen_counts_after_it`.
//! * **A change of rate shifts a stop.** The clock stops at exactly the time that was asked for:
//!   `coeval-time::clock_cases::stop_means_stop_whatever_the_rate_becomes`,
//!   `integration-tests::clock::run_until_stops_everybody_exactly_there`.
//! * **A pause undoes a change of rate made at once.** Both hold:
//!   `coeval-time::clock_cases::pause_and_rate_made_at_once_both_hold`.
//! * **A date in TAI is printed as if it were UTC.** Every printed time names its scale, and dates beyond the table of
//!   leap seconds say so: `coeval-time::civil_dates::tai_date_is_not_printed_with_the_hour_of_utc`,
//!   `coeval-time::civil_dates::inside_of_a_leap_second_converts_both_ways`,
//!   `coeval-systems::values::a_start_in_tai_is_no_start_in_utc`.
//! * **A jump is taken for a step of the simulation.** `coeval-systems::running::steps_are_sim_time_and_a_jump_is_never_one`,
//!   `coeval-time::timers::forward_jump_fires_once_with_the_count_missed`.
//!
//! # Reading and moving
//! * **A reader waits for a writer that is stopped in the middle.** It goes on reading the value before:
//!   `coeval-cell::ring::writer_stopped_in_the_middle_delays_no_reader`,
//!   `coeval-store::cases::a_writer_stopped_in_the_middle_blocks_no_reader`.
//! * **A reader sees half a value.** `coeval-cell::ring::readers_under_two_busy_writers_see_whole_samples_in_order`,
//!   `coeval-store::stress::readers_see_whole_values_and_stamps_never_go_back`.
//! * **A handle looks up or allocates.** `coeval-store::alloc::handle_reads_and_writes_allocate_nothing`.
//! * **Motion is counted from when it arrived.** Its origin is when its author wrote it:
//!   `coeval-motion::select::origin_is_the_writers`,
//!   `coeval-store::cases::the_origin_of_extrapolation_is_the_writers`,
//!   `integration-tests::motion::the_origin_is_the_writers_over_a_slow_link`.
//! * **What came to rest creeps on.** After silence the last value is read bit for bit:
//!   `coeval-motion::select::comes_to_rest`, `coeval-store::cases::what_comes_to_rest_is_read_exactly`,
//!   `integration-tests::motion::what_came_to_rest_stays`.
//! * **After time turned round, reads follow the branch before.** They follow the newest:
//!   `coeval-motion::select::turning_round_follows_the_newest_branch`,
//!   `coeval-store::cases::turning_round_follows_the_newest_branch`,
//!   `integration-tests::motion::a_read_follows_the_newest_branch_after_turning_round`.
//! * **Samples from before a jump mix with those after.** They change no read, and are counted:
//!   `coeval-motion::select::branch_reads_only_the_newest_epoch_and_counts_the_unheard`,
//!   `coeval-store::cases::an_abandoned_branch_changes_nothing_and_is_counted`,
//!   `integration-tests::motion::an_author_that_missed_the_jump_changes_no_read`.
//! * **A jump of a century throws an aircraft out of the solar system.** Local models hold, orbits follow:
//!   `coeval-motion::select::jump_moves_time_not_state`, `coeval-store::cases::a_jump_moves_time_not_state`,
//!   `integration-tests::motion::a_jump_moves_time_not_state`.
//! * **Time warp breaks an orbit.** One write is within a centimeter for a month:
//!   `coeval-motion::orbits::warp_a_circular_orbit_is_within_a_centimeter_over_thirty_days`,
//!   `integration-tests::motion::an_orbit_at_a_million_times_real_time_is_the_closed_form`.
//! * **A read out of reach gives some value.** It is an error that tells the past from the future:
//!   `coeval-motion::select::too_far_past_and_too_far_future_differ`,
//!   `integration-tests::motion::too_far_past_and_too_far_future_are_told_apart`.
//! * **A teleport looks like flying there.** Reads never interpolate across one:
//!   `coeval-motion::select::a_teleport_is_never_interpolated_across`, `integration-tests::motion::a_teleport_is_no_way_there`.
//! * **Rotation through zero divides by zero.** `coeval-motion::models::body_rates_through_zero`.
//! * **A threshold counts each axis by itself.** It is a sphere, and rotation counts without speed:
//!   `coeval-motion::models::threshold_is_a_sphere`,
//!   `coeval-motion::models::rotation_without_speed_is_published_and_survives`,
//!   `integration-tests::motion::a_publisher_sends_when_readers_are_off_and_not_before`.
//! * **A context of another session is believed.** Reads and writes at it are refused:
//!   `coeval-store::cases::a_context_of_another_session_is_refused`,
//!   `integration-tests::misuse::a_context_of_another_session_is_refused`.
//! * **A clock is read behind one's back.** An entered context stands still:
//!   `coeval::entered::an_entered_context_stands_still_and_reads_no_clock`.
//!
//! # Between peers
//! * **A receiver that restarted empty gets only what is new.** It gets everything, whatever the sender remembers:
//!   `coeval-sync::links::empty_receiver_gets_everything_whatever_the_cursor`,
//!   `coeval-simnet::cases::a_receiver_that_restarts_empty_gets_everything_not_what_follows`.
//! * **A slow consumer slows the others or fills the sender.** It costs one entry for each parameter:
//!   `coeval-sync::links::slow_consumer_costs_one_entry_per_key_and_slows_no_one`,
//!   `coeval-simnet::cases::a_slow_consumer_costs_one_entry_for_each_key_and_slows_nobody`,
//!   `integration-tests::processes::a_stopped_program_catches_up`.
//! * **A joiner misses what is written while it joins.** `coeval-sync::links::joiner_misses_nothing_while_writes_go_on`,
//!   `integration-tests::processes::a_joiner_during_writes_misses_nothing`.
//! * **Joining overwrites.** `integration-tests::sessions::a_joiner_overwrites_nothing_with_what_it_would_start_with`.
//! * **The session ends with its host.** `coeval-sync::members::joiners_need_one_address_and_the_session_outlives_its_host`,
//!   `integration-tests::processes::a_mesh_outlives_the_kill_of_its_host`.
//! * **What was acknowledged is lost with its author.** While processes are killed, stopped, cut off and cut in two, what
//!   one that lives on acknowledged survives, no deleted entity comes back, and no event comes twice:
//!   `integration-tests::soak::nothing_acknowledged_is_lost_by_processes_under_torture`.
//! * **A full disk under the log ends a peer.** `coeval-cli::session::a_full_disk_under_the_log_does_not_end_a_peer`.
//! * **A link resumes with everything, or with a gap.** `coeval-sync::links::known_cursor_resumes_with_what_follows`,
//!   `coeval-sync::links::cursor_of_an_unfinished_repair_skips_nothing`.
//! * **A lost message is lost.** Digests find and mend the difference:
//!   `coeval-sync::repair::one_lost_message_heals_within_two_periods`,
//!   `coeval-sync::repair::random_losses_heal_in_any_topology`.
//! * **Updates go round in a mesh.** Each arrives about once:
//!   `coeval-simnet::seeds::each_topology_passes_updates_on_once`,
//!   `coeval-sync::links::updates_reach_each_program_once`.
//! * **Two that dial each other keep two links, or none.** `coeval-sync::links::two_that_dial_each_other_keep_the_same_one_link`,
//!   `coeval-quic::links::two_peers_dialing_each_other_at_once_keep_the_same_one_link`.
//! * **Events are lost, doubled, or replayed to those who join.** Each peer present gets each once, in order:
//!   `coeval-sync::events::events_arrive_once_and_in_order_though_links_are_reset`,
//!   `coeval-sync::events::joiner_gets_no_earlier_events_and_the_absent_none`,
//!   `coeval-sync::events::an_event_of_a_sender_not_heard_of_yet_waits_until_it_can_be_answered`,
//!   `integration-tests::events::events_pass_loss_and_a_partition_once_and_in_order`.
//! * **A dead author looks alive.** It is reported lost 12 s of wall time after it was last heard, 13 s at most, also if its
//!   answers had come late before: `coeval-simnet::driver::link_to_a_dead_peer_falls_in_time_though_it_once_answered_late`,
//!   `coeval-motion::models::an_author_is_lost_after_two_and_four_tenths_heartbeats`,
//!   `coeval-sync::members::unreachable_node_is_lost_after_twelve_seconds_and_one_that_leaves_at_once`,
//!   `integration-tests::motion::a_killed_author_is_reported_lost`.
//! * **A flush returns before the others have it, or waits for who was not asked.**
//!   `coeval-sync::links::flush_target_is_acknowledged_once_applied`,
//!   `coeval-simnet::cases::a_flush_does_not_return_before_the_first_repair_is_through`,
//!   `integration-tests::sessions::a_flush_waits_for_those_it_names`,
//!   `integration-tests::sessions::a_flush_names_who_refused`.
//! * **A watch loses changes in silence.** Several of one parameter become one; when there are too many, it says so:
//!   `coeval-store::watch::changes_of_a_slot_become_one`, `coeval::watch::a_watch_that_lacks_changes_says_so_once`.
//! * **A peer that broke or left keeps its program waiting.** Reads work, writes and waits say that it stopped:
//!   `coeval::peer::after_a_panic_of_the_io_thread_reads_work_and_writes_say_stopped`,
//!   `integration-tests::misuse::after_leaving_reads_work_and_writes_say_stopped`.
//! * **A peer that stops reading, stops running or dies holds what others keep for it.** Links are cut, connections, tasks
//!   and queues go, and it is linked again when it comes back:
//!   `coeval-simnet::driver::real_drivers_converge_and_leak_nothing_whatever_is_done_to_their_network`,
//!   `coeval-simnet::driver::link_that_was_closed_here_goes_also_when_its_peer_reads_nothing`,
//!   `coeval-simnet::driver::stopped_process_is_given_up_and_found_again`.
//! * **A digest lags behind what was written.** `integration-tests::sessions::a_digest_is_of_all_that_was_written_so_far`.
//!
//! # The journal
//! * **What a lone peer wrote dies with it.** What it flushed to its journal is there, however it ended:
//!   `integration-tests::journal::a_lone_program_that_is_killed_loses_nothing_it_flushed`,
//!   `integration-tests::journal::a_lone_peer_flushes_to_its_journal_and_its_session_is_hosted_again`,
//!   `coeval-sync::log::what_was_logged_gives_the_replica_back`.
//! * **A torn tail takes more than itself, or half a batch comes back.** The journal is cut at the last whole batch:
//!   `coeval-journal::journal::cut_anywhere_it_gives_the_whole_batches_before`,
//!   `coeval-journal::journal::a_tail_that_was_never_synced_is_cut_and_nothing_that_was`,
//!   `coeval-sync::log::wherever_the_log_ends_no_batch_is_torn`.
//! * **Damage is passed over.** It is told with its place, and what comes before can be salvaged:
//!   `coeval-journal::journal::any_flipped_byte_is_told_or_loses_nothing`,
//!   `coeval-journal::journal::a_failed_sync_is_never_passed_over`,
//!   `integration-tests::journal::damage_in_the_middle_is_told_and_what_comes_before_can_be_salvaged`.
//! * **A full or slow disk stops the session.** It delays nobody but who flushes, and `flush` names the journal:
//!   `integration-tests::journal::a_full_disk_stops_nothing_and_flush_names_the_journal`,
//!   `integration-tests::journal::a_journal_that_cannot_be_written_for_a_while_is_told_and_comes_back_whole`,
//!   `coeval-sync::log::a_log_that_lags_slows_nobody_and_takes_one_delta_later`.
//! * **A journal grows without end.** A new file with a snapshot takes its place, whole or not at all:
//!   `integration-tests::journal::a_large_world_comes_back_and_long_files_are_replaced_while_writes_go_on`,
//!   `coeval-journal::journal::a_new_file_takes_the_place_of_the_old_whole_or_not_at_all`.
//! * **Who comes back brings deleted things back, or loses what it wrote alone.** Neither:
//!   `integration-tests::journal::what_was_written_while_nobody_heard_spreads_and_what_was_deleted_meanwhile_stays_deleted`.
//! * **Who wrote alone never learns what became of it.** It is told, once it has caught up:
//!   `integration-tests::journal::who_was_cut_off_learns_what_became_of_its_writes`.
//! * **Two write one journal, or a journal goes to another session.**
//!   `integration-tests::journal::journals_of_others_are_refused_with_words`.
//!
//! # Going back
//! * **A restore leaves somebody behind, or who was away brings the old world back.** Everyone ends with what was saved, the
//!   clock at its time and paused, and learns which of its writes fell:
//!   `integration-tests::worlds::a_restore_takes_everyone_back_and_who_was_cut_off_too`,
//!   `coeval-sync::worlds::who_was_cut_off_brings_nothing_back_and_learns_what_fell`,
//!   `coeval-sync::worlds::storms_with_restores_end_in_the_newest_world`.
//! * **Two restores at once tear the session apart.** The greater wins everywhere, the other's author is told:
//!   `coeval-sync::worlds::of_two_restores_at_once_the_greater_wins_and_the_other_is_told`.
//! * **Somebody sees half of each world.** `coeval-sync::worlds::a_world_is_entered_all_at_once`,
//!   `coeval-store::worlds::readers_see_one_world_or_the_other_while_writers_race_with_the_switch`.
//! * **Handles break when the world changes.** `coeval-store::worlds::handles_go_on_and_those_of_what_is_gone_read_missing`.
//! * **A damaged checkpoint is restored.** `coeval-wire::checkpoint::damaged_cut_and_foreign_bytes_are_told_apart`,
//!   `integration-tests::worlds::checkpoint_files_that_are_damaged_cut_or_of_another_session_are_refused_in_words`.
//!
//! # Who gets in, and bad input
//! * **An invite admits beyond its terms.** `coeval-quic::refusals::session_states_of_an_invite_reach_the_dialer_in_words`,
//!   `integration-tests::misuse::an_invite_admits_only_on_its_terms`,
//!   `integration-tests::misuse::an_invite_for_one_admits_one_of_two_at_once`.
//! * **Somebody without the secret gets in, or learns it.** `coeval-quic::refusals::bad_proofs_are_refused_and_give_nothing_away`,
//!   `coeval-quic::refusals::host_that_does_not_know_the_secret_is_refused_by_the_joiner`.
//! * **An observer writes.** `integration-tests::misuse::an_observer_never_writes`,
//!   `coeval-sync::members::observers_read_and_never_relay`.
//! * **Garbage brings a peer down, or takes its memory.** `coeval-wire::body::mutated_bodies_never_panic_and_never_grow_out_of_proportion`,
//!   `coeval-wire::frames::arbitrary_bytes_never_panic`,
//!   `coeval-quic::refusals::garbage_on_the_port_is_ignored_and_counted`,
//!   `integration-tests::networks::garbage_on_the_port_does_no_harm`.
//! * **Another version is misread.** `coeval-quic::refusals::other_version_is_told_with_both_numbers`,
//!   `coeval-wire::frames::unknown_version_kind_and_field_are_named`.
//! * **A mistake in a config is found late, or not told where.** `coeval-systems::refusals::wrong_keys`,
//!   `coeval-systems::refusals::wrong_types`, `coeval-systems::refusals::wrong_units_and_numbers`,
//!   `coeval-systems::refusals::duplicates`, `coeval-systems::refusals::references_to_nothing_and_in_circles`.
//! * **Programs that read one config make different entities.** `coeval-systems::agreement::independent_parses_agree_on_ids_and_digest`.
//! * **A system that panics takes others down.** `coeval-systems::running::a_panic_in_one_leaves_the_others_going_and_both_end`.

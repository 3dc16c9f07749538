//! Where the commands of a session come from: the client, or the thread that reads what the client sends.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use super::call::{Call, Unusable};
use super::others::{Ended, Others};
use super::records::Subject;
use crate::mode::pipe::input::{Inbox, Incoming};
use crate::mode::pipe::patience::Patience;
use crate::signals::Signals;

/// What is to be done next.
pub(super) enum Order {
    /// A command, or a line that is none.
    Follow(Result<Call, Box<Unusable>>),
    /// End the session; this is answered then.
    Close(Subject),
    /// Nothing follows: end it.
    End,
    /// Nothing yet.
    Wait,
}

/// A source of orders.
pub(super) enum Feed {
    /// None yet.
    Nothing,
    /// Standard input; commands for other sessions go to their threads.
    Client { input: Inbox, patience: Arc<Patience>, others: Others },
    /// The thread that reads it.
    Orders(Receiver<Order>),
}

impl Feed {
    /// The next order.
    pub(super) fn take(&self) -> Order {
        match self {
            Self::Nothing => Order::Wait,
            Self::Client { input, .. } => match input.take() {
                Ok((Incoming::Line(line), room)) => {
                    Order::Follow(Call::read(&line).map(|call| call.in_room(room)))
                }
                Ok((Incoming::Unfit(why), _)) => Order::Follow(Err(Unusable::unreadable(why.into()))),
                Ok((Incoming::End, _)) | Err(TryRecvError::Disconnected) => Order::End,
                Err(TryRecvError::Empty) => Order::Wait,
            },
            Self::Orders(orders) => match orders.try_recv() {
                Ok(order) => order,
                Err(TryRecvError::Disconnected) => Order::End,
                Err(TryRecvError::Empty) => Order::Wait,
            },
        }
    }

    /// The number of a signal that came; only the thread of the client looks for them.
    pub(super) fn signal(&self, signals: &Signals) -> Option<u8> {
        let Self::Client { patience, .. } = self else { return None };
        let number = signals.take()?;
        patience.leave();
        Some(number)
    }

    /// Whether it is the client: the end of it is the end of the process.
    pub(super) const fn is_of_client(&self) -> bool {
        matches!(self, Self::Client { .. })
    }

    /// The other sessions end, each by itself.
    pub(super) fn end_others(&mut self) -> Vec<Ended> {
        match self {
            Self::Client { others, .. } => others.end(),
            Self::Nothing | Self::Orders(_) => Vec::new(),
        }
    }
}

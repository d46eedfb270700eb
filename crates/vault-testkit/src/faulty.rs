//! Store around another one that fails, delays calls, and changes results as a test requires.

use async_trait::async_trait;
use std::any::Any;
use std::future::{Future, pending};
use std::sync::Arc;
use vault_core::operation::Work;
use vault_core::port::*;
use vault_core::sealed::InstanceRecord;

/// Effect on one call of a store method.
#[derive(Debug)]
pub enum Fault {
    /// The call is not executed and fails with this error.
    Before(StoreError),
    /// The call is executed and fails with this error: its result is lost.
    After(StoreError),
    /// The call is executed after yielding to other tasks this many times.
    Delayed(usize),
    /// The call is executed and never returns. The caller abandons it by dropping the call.
    Unanswered,
}

type Faults = Box<dyn Fn(&'static str) -> Option<Fault> + Send + Sync>;
type AlterAnswer = Box<dyn Fn(&'static str, &mut dyn Any) + Send + Sync>;

/// Every port that the store within has. Without faults and alterations, it does what that does.
///
/// ```
/// # use std::sync::Arc;
/// # use vault_core::port::{KeyRepository, StoreError};
/// # use vault_testkit::faulty::{Fault, Faulty};
/// # use vault_testkit::memory::MemoryStore;
/// let down = |method| (method == "instance").then(|| Fault::Before(StoreError::Unavailable("it is down".into())));
/// let store = Faulty::new(Arc::new(MemoryStore::new())).faults(down);
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// assert!(matches!(store.instance().await, Err(StoreError::Unavailable(_))));
/// # });
/// ```
pub struct Faulty<S: ?Sized> {
    faults: Faults,
    answers: Vec<AlterAnswer>,
    store: Arc<S>,
}

impl<S: ?Sized> Faulty<S> {
    /// Creates a store around `store` without faults.
    pub fn new(store: Arc<S>) -> Self {
        Self { faults: Box::new(|_| None), answers: Vec::new(), store }
    }

    /// Applies the fault that `faults` returns for the name of a method to its calls.
    #[must_use]
    pub fn faults(self, faults: impl Fn(&'static str) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { faults: Box::new(faults), ..self }
    }

    /// Changes the results of `method`.
    #[must_use]
    pub fn answering<T: 'static>(
        mut self,
        method: &'static str,
        alter: impl Fn(&mut Result<T, StoreError>) + Send + Sync + 'static,
    ) -> Self {
        self.answers.push(Box::new(move |of, answer| {
            if of == method {
                alter(answer.downcast_mut().expect("the method answers so"));
            }
        }));
        self
    }

    async fn around<T: Send + 'static>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let fault = (self.faults)(method);
        match &fault {
            Some(Fault::Delayed(times)) => {
                for _ in 0..*times {
                    tokio::task::yield_now().await;
                }
            }
            Some(Fault::Before(_) | Fault::After(_) | Fault::Unanswered) | None => {}
        }
        if let Some(Fault::Before(error)) = fault {
            return Err(error);
        }
        let mut answer = call.await;
        self.answers.iter().for_each(|alter| alter(method, &mut answer));
        match fault {
            Some(Fault::After(error)) => Err(error),
            Some(Fault::Unanswered) => pending().await,
            _ => answer,
        }
    }
}

#[async_trait]
impl<S: RowStore + ?Sized> RowStore for Faulty<S> {
    /// Faults and answers name the operation.
    async fn submit(&self, work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError> {
        self.around(work.name(), self.store.submit(work)).await
    }
}

#[async_trait]
impl<S: KeyRepository + ?Sized> KeyRepository for Faulty<S> {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.around("instance", self.store.instance()).await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.around("create_instance", self.store.create_instance(command)).await
    }
}
